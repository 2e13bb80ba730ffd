# In the twin, this machine has no IPv6 address, and nobody tries.
setup() {
    own_address
    helper python3 "$here/http_server.py" tcp 192.0.2.2:80 0
    if [ "$1" = stall ]; then
        ip link add six0 type veth peer name six1
        ip address add 2001:db8::1/64 dev six0 nodad
        ip link set six0 up
        ip link set six1 up
        ip neighbour add 2001:db8::2 lladdr 02:00:00:00:00:01 dev six0
    fi
}
# The server closes each connection, so that each page needs one of its own.
stall() {
    observe "${timed[@]}" curl -s -o "$STAGE/#1" --resolve 'shop.test:80:[2001:db8::2],192.0.2.2' \
        'http://shop.test/{one,two,three}'
}
healthy() { stall; }
