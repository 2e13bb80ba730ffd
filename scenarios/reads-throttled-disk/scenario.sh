# The twin reads the same file, as cold, without the limit.
setup() {
    loop_disk
    seq 1 700000 >"$STAGE/mnt/log"
    make_cold
    if [ "$1" = stall ]; then throttle read_bps 4194304; fi
}
stall() { observe "${timed[@]}" grep -c 7 "$STAGE/mnt/log" >"$STAGE/count"; }
healthy() { stall; }
