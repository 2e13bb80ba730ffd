# The twin's server answers at once.
setup() {
    local delay=1
    if [ "$1" = healthy ]; then delay=0; fi
    own_helper python3 "$here/http_server.py" unix "$STAGE/server.sock" "$delay"
    truth "\"holder_pid\": $helper_pid"
}
stall() { observe "${timed[@]}" curl -s -o "$STAGE/page" --unix-socket "$STAGE/server.sock" http://localhost/; }
healthy() { stall; }
