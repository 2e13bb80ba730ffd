# The other HTTP client again, a new one for each request, and one TLS context for all: each connection is made anew, and takes up the session
# of the one before. The twin has one client for all, whose supplier keeps connections open.
setup() {
    local how=one keep='keepalive_timeout 0;'
    if [ "$1" = healthy ]; then how=kept keep='keepalive_requests 1000000;'; fi
    precedence 100
    start_shop "ssl_protocols TLSv1.2 TLSv1.3; ssl_session_cache shared:shop:1m; $keep" OtherClient "$how"
}
stall() { attach_and_end "$shop" 5; }
healthy() { stall; }
