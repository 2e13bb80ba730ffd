# In the twin there are ports enough.
setup() {
    local last=40007
    if [ "$1" = healthy ]; then last=49999; fi
    echo "40000 $last" >/proc/sys/net/ipv4/ip_local_port_range
    helper python3 "$scenario/server.py"
}
stall() { observe python3 "$scenario/client.py" "$HOLDUP_TRUTH"; }
healthy() { stall; }
