# The twin's cgroup has room for the file, which is in memory already.
setup() {
    loop_disk
    head -c 12M /dev/urandom >"$STAGE/mnt/table"
    make_cold
    throttle read_bps 33554432
    if [ "$1" = stall ]; then limit_memory 10M; else limit_memory 64M; cat "$STAGE/mnt/table" >"$STAGE/warm"; fi
}
stall() { observe "${confined[@]}" "${timed[@]}" "$PROGRAMS/again" "$STAGE/mnt/table" 4; }
healthy() { stall; }
