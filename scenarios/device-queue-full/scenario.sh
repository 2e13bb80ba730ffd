# In the twin, the device has no limit.
setup() {
    head -c 12M /dev/zero >"$STAGE/dump"
    helper python3 "$scenario/read.py"
    if [ "$1" = stall ]; then
        ip link set lo mtu 1500
        tc qdisc add dev lo root tbf rate 60mbit burst 64k limit 10mb
    fi
}
# shellcheck disable=SC2016 # the observed shell expands them
stall() { observe bash -c 'exec "$@" >/dev/tcp/127.0.0.1/9000' bash "${timed[@]}" cat "$STAGE/dump"; }
healthy() { stall; }
