# The twin's second transfer is between two other accounts.
setup() { start_java com.shop.Transfer "$1"; }
stall() {
    # Two wait for each other; the main thread sleeps.
    attach_java 2 3 "$helper_pid"
}
healthy() { look_at "$helper_pid" 0; }
