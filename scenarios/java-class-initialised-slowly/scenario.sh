# The twin's class reads nothing as it is initialised. A dump of the stall says that the tills are runnable.
setup() {
    precedence
    compile_java
    mkfifo "$STAGE/rates"
    export RATES="$STAGE/rates"
    # It has the pipe open, and writes nothing.
    helper python3 -c 'import os, signal, sys; os.open(sys.argv[1], os.O_RDWR); os.write(3, b"ready\n"); signal.pause()' "$RATES"
    helper "${java[@]}" com.shop.Till "$1"
}
stall() {
    attach --pid "$helper_pid" --duration 1
    # Three wait for the class, one reads, the main thread sleeps.
    truth "\"waited_ns\": 3, \"elapsed_ns\": 5, \"holder_pid\": $helper_pid"
}
healthy() { look_at "$helper_pid" 0; }
