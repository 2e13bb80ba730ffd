# The twin's workers have done their tasks, and wait for others as workers do.
setup() {
    precedence
    compile_java
    helper "${java[@]}" com.shop.Orders "$1"
}
stall() {
    attach --pid "$helper_pid" --duration 1
    # Three wait for a result; the main thread sleeps.
    truth '"waited_ns": 3, "elapsed_ns": 4'
}
healthy() { look_at "$helper_pid" 0; }
