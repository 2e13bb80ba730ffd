# The twin's client comes at once.
setup() {
    local delay=1
    if [ "$1" = healthy ]; then delay=0; fi
    helper python3 "$scenario/client.py" "$STAGE/go" "$delay"
}
stall() { observe "${timed[@]}" python3 -c 'import socket, sys
server = socket.create_server(("127.0.0.1", 8080))
with open(sys.argv[1], "w") as gate:
    gate.write("listening\n")
server.accept()' "$STAGE/go"; }
healthy() { stall; }
