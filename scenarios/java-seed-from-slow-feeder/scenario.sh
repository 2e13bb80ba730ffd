# The twin has the kernel's own device.
setup() {
    precedence
    "$JAVA_HOME/bin/javac" -d "$STAGE" "$scenario/Server.java"
    if [ "$1" = stall ]; then
        mkfifo "$STAGE/random"
        mount --bind "$STAGE/random" /dev/random
        helper python3 "$here/feed.py" /dev/random 0.257
        # Sixteen of them end between two of the whole seconds at which a thread of Java's stirs.
        truth "\"holder_pid\": $helper_pid"
    fi
}
# The shell reads the clock without a process of its own; what Java takes to start is in the time that the server counts.
# shellcheck disable=SC2016 # the observed shell expands them
stall() {
    HOLDUP_TRUTH=$HOLDUP_TRUTH observe bash -c 'BEGAN=$EPOCHREALTIME exec "$1/bin/java" -cp "$0" Server' "$STAGE" "$JAVA_HOME"
}
healthy() { stall; }
