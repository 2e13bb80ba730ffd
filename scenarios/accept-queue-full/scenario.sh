# The twin's server accepts everybody.
setup() {
    local manner=never
    if [ "$1" = healthy ]; then manner=accepts; fi
    helper python3 "$scenario/listen.py" "$manner"
}
stall() { observe "${timed[@]}" curl -s -o "$STAGE/page" --connect-timeout 1.5 http://127.0.0.1:9000/; }
healthy() { stall; }
