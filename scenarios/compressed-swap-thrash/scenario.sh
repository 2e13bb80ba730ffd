# The twin's cgroup has room for all of it. Its program is swap-thrash's.
setup() {
    swap_compressed
    if [ "$1" = stall ]; then limit_memory 24M; else limit_memory 128M; fi
}
stall() { observe "${confined[@]}" "${timed[@]}" "$PROGRAMS/squeeze" 48 20; }
healthy() { stall; }
