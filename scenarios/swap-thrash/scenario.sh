# The twin's cgroup has room for all of it.
setup() {
    swap_disk
    throttle read_bps 12582912
    if [ "$1" = stall ]; then limit_memory 12M; else limit_memory 64M; fi
}
stall() { observe "${confined[@]}" "${timed[@]}" "$PROGRAMS/thrash" 20 1; }
healthy() { stall; }
