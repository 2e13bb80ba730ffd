# The twin's second transfer is between two other accounts.
setup() {
    precedence
    compile_java
    helper "${java[@]}" com.shop.Transfer "$1"
}
stall() {
    attach --pid "$helper_pid" --duration 1
    # Two wait for each other; the main thread sleeps.
    truth "\"waited_ns\": 2, \"elapsed_ns\": 3, \"holder_pid\": $helper_pid"
}
healthy() { look_at "$helper_pid" 0; }
