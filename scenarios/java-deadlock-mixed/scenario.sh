# The twin's count is of another stock. What Java's own tools tell of the stall is that a thread is blocked and one runs.
setup() {
    precedence
    compile_java
    cc -shared -fPIC -O2 -I"$JAVA_HOME/include" -I"$JAVA_HOME/include/linux" -o "$STAGE/libscanner.so" "$scenario/native/scanner.c"
    helper "${java[@]}" com.shop.Till "$1" "$STAGE/libscanner.so"
}
stall() {
    attach --pid "$helper_pid" --duration 1
    # Two wait for each other, one of them for a lock that is none of Java's, and a third for the same monitor.
    truth "\"waited_ns\": 2, \"elapsed_ns\": 3, \"holder_pid\": $helper_pid"
}
healthy() { look_at "$helper_pid" 0; }
