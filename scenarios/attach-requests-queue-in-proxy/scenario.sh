# haproxy sends its backend one request at a time, of five clients'. The twin has no such limit, and its clients pause.
setup() {
    local limit=1 delay=0.05 pause=0
    if [ "$1" = healthy ]; then limit=100 delay=0 pause=0.2; fi
    precedence
    helper python3 "$here/backend.py" 8096 "$delay"
    cat >"$STAGE/haproxy.cfg" <<END
global
    nbthread 1
defaults
    mode http
    timeout connect 5s
    timeout client 60s
    timeout server 60s
frontend web
    bind 127.0.0.1:8095
    default_backend app
backend app
    server app 127.0.0.1:8096 maxconn $limit
END
    haproxy -db -f "$STAGE/haproxy.cfg" >"$STAGE/haproxy.log" 2>&1 &
    proxy=$!
    helpers+=("$proxy")
    until ss --no-header --listening --tcp "sport = :8095" | grep --quiet 8095; do :; done
    helper python3 "$scenario/clients.py" 8095 "$pause"
}
stall() {
    attach --pid "$proxy" --duration 4
    truth '"waited_ns": 1, "elapsed_ns": 1'
}
healthy() {
    attach --pid "$proxy" --duration 4
    truth '"waited_ns": 0, "elapsed_ns": 1'
}
