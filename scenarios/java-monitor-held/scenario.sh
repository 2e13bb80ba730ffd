# The tills and the main thread want the same monitor, which the main thread has and sleeps in. In the twin each till has a monitor of its own
# and sleeps too.
setup() {
    precedence
    compile_java
    helper "${java[@]}" com.shop.Cart "$1"
}
stall() {
    attach --pid "$helper_pid" --duration 1
    # Of its five threads four wait for the monitor, and one sleeps.
    truth "\"waited_ns\": 4, \"elapsed_ns\": 5, \"holder_pid\": $helper_pid"
}
healthy() { look_at "$helper_pid" 0; }
