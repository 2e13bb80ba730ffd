# The twin's peer reads at once.
setup() {
    local delay=1
    if [ "$1" = healthy ]; then delay=0; fi
    head -c 12M /dev/zero >"$STAGE/dump"
    helper python3 "$scenario/read.py" "$delay"
}
# shellcheck disable=SC2016 # the observed shell expands them
stall() { observe bash -c 'exec "$@" >/dev/tcp/127.0.0.1/9000' bash "${timed[@]}" cat "$STAGE/dump"; }
healthy() { stall; }
