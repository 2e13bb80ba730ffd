# In the twin, a name with a dot is looked up as it is first.
setup() {
    local dots=5
    if [ "$1" = healthy ]; then dots=1; fi
    own_resolver
    printf 'nameserver 127.0.0.1\nsearch default.svc.test svc.test cluster.test north.test example.test\noptions ndots:%s\n' \
        "$dots" >"$STAGE/resolv.conf"
    helper python3 "$scenario/nameserver.py"
}
stall() { observe "${timed[@]}" getent ahosts db.shop.test api.shop.test; }
healthy() { stall; }
