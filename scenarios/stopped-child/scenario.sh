# The twin's other process sends no signals.
setup() {
    mkfifo "$STAGE/answer"
    own_helper python3 "$scenario/stop.py" "$1" "$STAGE/go" "$STAGE/answer" "$HOLDUP_TRUTH"
}
stall() { observe sh -c 'bash "$0"; exit 0' "$scenario/child.sh"; }
healthy() { stall; }
