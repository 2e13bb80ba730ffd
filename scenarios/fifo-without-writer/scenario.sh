# The twin's writer is there before.
setup() {
    mkfifo "$STAGE/queue"
    own_helper python3 "$scenario/writer.py" "$1" "$STAGE/queue" "$STAGE/go"
    truth "\"holder_pid\": $helper_pid"
}
stall() { observe "${gated[@]}" "${timed[@]}" head -n 1 "$STAGE/queue" >"$STAGE/read"; }
healthy() { stall; }
