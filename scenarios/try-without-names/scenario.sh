# By hand the names are written into /etc/hosts, as a person would. One of them is a short one that the search list completes. What is no
# wait for a name is a sleep, so that a busy machine changes little. In the twin the server answers at once, and nothing is tried.
setup() {
    local delay=0.1
    if [ "$1" = healthy ]; then delay=0; fi
    own_resolver
    printf 'nameserver 127.0.0.1\nsearch shop.test\n' >"$STAGE/resolv.conf"
    # As systemd writes it: something else comes before files, which is not there.
    printf 'hosts: mymachines [!UNAVAIL=return] files dns\n' >"$STAGE/nsswitch.conf"
    helper python3 "$here/nameserver.py" answers "$delay"
    {
        cat /etc/hosts
        printf '192.0.2.10 %s\n' db.shop.test shop api.other.test
    } >"$STAGE/hosts"
}
look_up=(sh -c 'getent ahosts db.shop.test; getent ahosts shop; getent ahosts api.other.test; sleep 0.15')
as_it_is() { "${look_up[@]}" >"$STAGE/found"; }
# shellcheck disable=SC2016 # the shell inside expands them
by_hand() {
    unshare --mount sh -c 'mount --bind "$0/hosts" /etc/hosts; printf "hosts: files dns\n" >"$0/nsswitch"; mount --bind "$0/nsswitch" /etc/nsswitch.conf; exec "$@"' \
        "$STAGE" "${look_up[@]}" >"$STAGE/found-by-hand"
}
stall() {
    save_by_hand
    experiment net.dns --runs 3 -- "${look_up[@]}"
}
healthy() { observe "${timed[@]}" getent ahosts db.shop.test; }
