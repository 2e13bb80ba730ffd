# The twin's classes do not need each other. A dump of the stall says that both threads are runnable.
setup() { start_java com.shop.Shop "$1"; }
stall() {
    # Two wait for each other's class; the main thread sleeps.
    attach_java 2 3
}
healthy() { look_at "$helper_pid" 0; }
