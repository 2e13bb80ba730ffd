# sendfile reads a file, as cold, from a disk with a limit. The twin has no limit.
setup() {
    loop_disk
    seq 1 700000 >"$STAGE/mnt/log"
    make_cold
    if [ "$1" = stall ]; then throttle read_bps 4194304; fi
}
stall() { observe "${timed[@]}" python3 "$scenario/send.py" "$STAGE/mnt/log"; }
healthy() { stall; }
