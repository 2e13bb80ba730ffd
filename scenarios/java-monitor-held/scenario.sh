# The tills and the main thread want the same monitor, which the main thread has and sleeps in. In the twin each till has a monitor of its own
# and sleeps too.
setup() { start_java com.shop.Cart "$1"; }
stall() {
    # Of its five threads four wait for the monitor, and one sleeps.
    attach_java 4 5 "$helper_pid"
}
healthy() { look_at "$helper_pid" 0; }
