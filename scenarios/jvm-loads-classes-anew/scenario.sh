# In the twin an archive has the classes ready.
setup() {
    precedence
    compile_java
    # What lies in a folder can't be in an archive.
    "$JAVA_HOME/bin/jar" --create --file "$STAGE/app.jar" -C "$STAGE/classes" .
    program=("-XX:SharedArchiveFile=$STAGE/app.jsa" -XX:+UseSerialGC -cp "$STAGE/app.jar" Starts jdk.compiler java.xml java.desktop/javax/swing)
    if [ "$1" = healthy ]; then
        BEGAN=$EPOCHREALTIME HOLDUP_TRUTH=$STAGE/first "${java[@]}" "-XX:ArchiveClassesAtExit=$STAGE/app.jsa" "${program[@]:1}" 2>"$STAGE/archive.log"
    else
        program=("${program[@]:1}")
    fi
}
stall() { observe "${started[@]}" "${program[@]}"; }
healthy() { stall; }
