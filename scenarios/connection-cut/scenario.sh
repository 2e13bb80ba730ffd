# In the twin, the way stays open.
setup() {
    local manner=cut
    if [ "$1" = healthy ]; then manner=whole; fi
    helper unshare --net python3 "$scenario/server.py" "$manner"
    ip link add near type veth peer name far
    ip link set far netns "$helper_pid"
    nsenter --target "$helper_pid" --net ip address add 192.0.2.2/24 dev far
    nsenter --target "$helper_pid" --net ip link set far up
    ip address add 192.0.2.1/24 dev near
    ip link set near up
}
stall() { observe "${timed[@]}" /usr/bin/python3 "$scenario/ask.py"; }
healthy() { stall; }
