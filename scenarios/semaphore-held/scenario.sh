# The twin's semaphore is up already.
setup() {
    helper "$PROGRAMS/raise" "$1" "$STAGE/set" "$STAGE/go"
    truth "\"holder_pid\": $helper_pid"
}
stall() { observe "${gated[@]}" "$PROGRAMS/lower" "$STAGE/set"; }
healthy() { stall; }
teardown() { ipcrm -s "$(cat "$STAGE/set")"; }
