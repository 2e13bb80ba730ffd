# The twin's daemon answers at once.
setup() {
    local delay_ms=200
    if [ "$1" = healthy ]; then delay_ms=0; fi
    seq 1 100000 >"$STAGE/rows"
    mkdir "$STAGE/mnt"
    helper "$PROGRAMS/slowfs" "$STAGE/mnt" "$STAGE/rows" "$delay_ms"
    truth "\"holder_pid\": $helper_pid"
}
stall() { observe "${timed[@]}" cat "$STAGE/mnt/data" >"$STAGE/copy"; }
healthy() { stall; }
