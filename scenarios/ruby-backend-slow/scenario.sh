# The twin's server answers at once.
setup() {
    local delay=1
    if [ "$1" = healthy ]; then delay=0; fi
    helper python3 "$here/http_server.py" tcp 127.0.0.1:8080 "$delay"
}
stall() { observe "${timed[@]}" ruby "$scenario/prices.rb"; }
healthy() { stall; }
