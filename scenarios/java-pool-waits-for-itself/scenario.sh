# The twin's workers have done their tasks, and wait for others as workers do.
setup() { start_java com.shop.Orders "$1"; }
stall() {
    # Three wait for a result; the main thread sleeps.
    attach_java 3 4
}
healthy() { look_at "$helper_pid" 0; }
