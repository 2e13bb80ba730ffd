# The twin takes up its last session.
setup() {
    local how=forget
    if [ "$1" = healthy ]; then how=resume; fi
    precedence 100
    start_tls 'ssl_session_timeout 1h; keepalive_requests 2;'
    helper python3 "$scenario/client.py" "$how" "$STAGE/tls/client" "$HOLDUP_TRUTH"
    client=$helper_pid
}
stall() { attach_and_end "$client" 5; }
healthy() { stall; }
