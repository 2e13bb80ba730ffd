# The twin's other program locks another file.
setup() {
    local locked=orders.lock
    if [ "$1" = healthy ]; then locked=other.lock; fi
    helper python3 "$scenario/lock.py" "$STAGE/$locked"
    helper python3 "$scenario/server.py" "$STAGE/orders.lock" "$HOLDUP_TRUTH"
    server=$helper_pid
    helper python3 "$scenario/client.py"
}
stall() { attach_and_end "$server" 3; }
healthy() { stall; }
