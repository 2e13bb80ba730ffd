# The twin's receiver does not pause.
setup() {
    helper "$PROGRAMS/drain" "$1" "$STAGE/queue"
    truth "\"holder_pid\": $helper_pid"
}
stall() { observe "$PROGRAMS/fill" "$STAGE/queue"; }
healthy() { stall; }
teardown() { ipcrm -q "$(cat "$STAGE/queue")" 2>/dev/null; }
