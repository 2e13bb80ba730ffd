# A client is made for each request, and a TLS context with it. The twin has one for all, whose supplier keeps connections open.
setup() {
    local how=each keep='keepalive_timeout 0;'
    if [ "$1" = healthy ]; then how=kept keep='keepalive_requests 1000000;'; fi
    precedence 100
    start_shop "ssl_protocols TLSv1.2 TLSv1.3; ssl_session_cache shared:shop:1m; $keep" OtherClient "$how"
}
stall() { attach_and_end "$shop" 5; }
healthy() { stall; }
