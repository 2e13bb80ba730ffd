# The twin's cgroup has room for the file.
setup() {
    loop_disk
    head -c 12M /dev/urandom >"$STAGE/mnt/table"
    make_cold
    throttle read_bps 33554432
    if [ "$1" = stall ]; then limit_memory 10M; else limit_memory 64M; fi
}
stall() { observe "${confined[@]}" "${timed[@]}" "$PROGRAMS/again" "$STAGE/mnt/table" 4; }
healthy() { stall; }
