# An event loop with a heartbeat awaits a connection, and gives up after a second. In the twin somebody accepts it.
setup() {
    if [ "$1" = stall ]; then
        black_hole
    else
        own_address
        helper python3 "$here/http_server.py" tcp 192.0.2.2:5432 0
    fi
}
stall() { observe "${timed[@]}" python3 "$scenario/client.py" 192.0.2.2 5432 1; }
healthy() { stall; }
