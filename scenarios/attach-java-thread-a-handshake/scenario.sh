# The twin's supplier keeps connections open.
setup() {
    local keep='keepalive_timeout 0;'
    if [ "$1" = healthy ]; then keep='keepalive_requests 1000000;'; fi
    precedence 100
    start_shop "ssl_protocols TLSv1.2 TLSv1.3; ssl_session_cache shared:shop:1m; $keep" Shop
}
stall() { attach_and_end "$shop" 5; }
healthy() { stall; }
