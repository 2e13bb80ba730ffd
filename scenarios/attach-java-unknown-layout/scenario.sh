# The tills and the main thread want the same monitor, which the main thread has and sleeps in. In the twin each till has a monitor of its own
# and sleeps too. With few threads a dump takes little of the time that it may.
setup() {
    precedence
    compile_java
    unknown_layout
    helper "${java[@]}" -XX:+UseSerialGC -XX:TieredStopAtLevel=1 com.shop.Cart "$1"
}
stall() {
    attach --pid "$helper_pid" --duration 4
    # Of its five threads four wait for the monitor, and one sleeps.
    truth "\"waited_ns\": 4, \"elapsed_ns\": 5, \"holder_pid\": $helper_pid"
}
healthy() {
    attach --pid "$helper_pid" --duration 4
    truth '"waited_ns": 0, "elapsed_ns": 1'
}
