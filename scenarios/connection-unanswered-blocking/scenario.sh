# In the twin, the address has a server.
setup() {
    # One repetition instead of six: the kernel gives up after two seconds.
    echo 1 >/proc/sys/net/ipv4/tcp_syn_retries
    if [ "$1" = stall ]; then
        black_hole
    else
        own_address
        helper python3 "$here/http_server.py" tcp 192.0.2.2:80 0
    fi
}
stall() { observe "${timed[@]}" bash -c 'exec 3<>/dev/tcp/192.0.2.2/80' 2>"$STAGE/message"; }
healthy() { stall; }
