# Networks of the scenario's own: its network namespace is empty but for lo. Sourced by stage.sh.

# 192.0.2.2 is beyond a cable whose other end throws everything away: no answer, no refusal.
black_hole() {
    ip link add hole0 type veth peer name hole1
    ip link set hole0 up
    ip link set hole1 up
    ip address add 192.0.2.1/24 dev hole0
    ip neighbour add 192.0.2.2 lladdr 02:00:00:00:00:01 dev hole0
}

# 192.0.2.2 is this machine.
own_address() {
    ip address add 192.0.2.2/32 dev lo
}

# The resolver asks 127.0.0.1 and nothing else, once, and gives up after a second.
own_resolver() {
    printf 'nameserver 127.0.0.1\noptions timeout:1 attempts:1\n' >"$STAGE/resolv.conf"
    printf 'hosts: files dns\n' >"$STAGE/nsswitch.conf"
    mount --bind "$STAGE/resolv.conf" /etc/resolv.conf
    mount --bind "$STAGE/nsswitch.conf" /etc/nsswitch.conf
    # A name service cache would answer in the resolver's place.
    if [ -d /run/nscd ]; then mount -t tmpfs none /run/nscd; fi
}
