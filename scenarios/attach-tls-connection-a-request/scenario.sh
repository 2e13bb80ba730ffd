# The twin keeps its connection.
setup() {
    local how=anew
    if [ "$1" = healthy ]; then how=keep; fi
    precedence 100
    start_tls 'ssl_session_tickets off; ssl_session_cache off; keepalive_requests 1000000;'
    helper python3 "$scenario/client.py" "$how" "$STAGE/tls/client" "$HOLDUP_TRUTH"
    client=$helper_pid
}
stall() { attach_and_end "$client" 5; }
healthy() { stall; }
