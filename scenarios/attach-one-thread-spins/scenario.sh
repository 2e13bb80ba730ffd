# One thread of forty-one asks again and again whether there is work, and gives way in between. The twin's sleeps until there is.
setup() {
    local how=yield
    if [ "$1" = healthy ]; then how=sleep; fi
    helper python3 "$scenario/server.py" "$how" "$HOLDUP_TRUTH"
    server=$helper_pid
}
stall() { attach_and_end "$server" 3; }
healthy() { stall; }
