# In the twin, the address has a server.
setup() {
    if [ "$1" = stall ]; then
        black_hole
    else
        own_address
        helper python3 "$here/http_server.py" tcp 192.0.2.2:80 0
    fi
}
stall() { observe "${timed[@]}" curl -s -o "$STAGE/page" --connect-timeout 1 http://192.0.2.2/; }
healthy() { stall; }
