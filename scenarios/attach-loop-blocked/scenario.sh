# The twin's loop does not sleep.
setup() {
    local pause=0.15
    if [ "$1" = healthy ]; then pause=0; fi
    helper python3 "$scenario/server.py" "$pause" "$HOLDUP_TRUTH"
    server=$helper_pid
    helper python3 "$scenario/client.py"
}
stall() { attach_and_end "$server" 3; }
healthy() { stall; }
