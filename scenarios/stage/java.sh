# Java programs, on the JDK that a run is for. Sourced by stage.sh.

# Compiles the scenario's sources and the stage's own; words are added to the class path. `"${java[@]}" CLASS` then runs one, and
# `"${started[@]}" CLASS` does that under `observe`, with the instant at which it was started in BEGAN.
java=()
started=()
compile_java() {
    local path=$STAGE/classes more made=$PROGRAMS/java/${scenario##*/}-$JAVA_VERSION sources=("$here"/java/stage/*.java "$scenario"/*.java)
    for more in "$@"; do path=$path:$more; done
    mkdir -p "$STAGE/classes"
    # The twin takes what was compiled for the stall. An ordinary user's stage may keep nothing there.
    if [ -d "$made" ] && [ -z "$(find "${sources[@]}" -newer "$made")" ]; then
        cp -r "$made/." "$STAGE/classes"
    else
        "$JAVA_HOME/bin/javac" -J-XX:TieredStopAtLevel=1 -nowarn -cp "$path" -d "$STAGE/classes" "${sources[@]}"
        if [ -w "$PROGRAMS" ]; then
            rm -rf "$made" "$made.new"
            mkdir -p "${made%/*}"
            cp -r "$STAGE/classes" "$made.new"
            mv "$made.new" "$made"
        fi
    fi
    java=("$JAVA_HOME/bin/java" -cp "$path")
    # The shell reads the clock without a process of its own; what Java takes to start is in the time that the program counts.
    # shellcheck disable=SC2016 # the observed shell expands them
    started=(env "HOLDUP_TRUTH=$HOLDUP_TRUTH" bash -c 'BEGAN=$EPOCHREALTIME exec "$0" "$@"' "${java[@]}")
}

# start_java CLASS ARGUMENT…: a helper that runs a class of the scenario's, compiled.
start_java() {
    precedence
    compile_java
    helper "${java[@]}" "$@"
}
# attach_java WAITING ALL [HOLDER]: attaches for a second; so many of the Java program's threads wait for each other, and the others sleep.
attach_java() {
    attach --pid "$helper_pid" --duration 1
    truth "\"waited_ns\": $1, \"elapsed_ns\": $2${3:+, \"holder_pid\": $3}"
}

# Has this run's JDK describe its structures otherwise: one of their names is another, as in a JVM that nobody knows.
unknown_layout() {
    local libjvm=$JAVA_HOME/lib/server/libjvm.so
    sed 's/_constMethod/_constXethod/g' "$libjvm" >"$STAGE/libjvm.so"
    mount --bind "$STAGE/libjvm.so" "$libjvm"
}
