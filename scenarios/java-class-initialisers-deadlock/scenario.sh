# The twin's classes do not need each other. A dump of the stall says that both threads are runnable.
setup() {
    precedence
    compile_java
    helper "${java[@]}" com.shop.Shop "$1"
}
stall() {
    attach --pid "$helper_pid" --duration 1
    # Two wait for each other's class; the main thread sleeps.
    truth '"waited_ns": 2, "elapsed_ns": 3'
}
healthy() { look_at "$helper_pid" 0; }
