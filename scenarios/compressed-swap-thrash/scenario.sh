# The twin's cgroup has room for all of it. Its program is swap-thrash's.
setup() {
    swap_compressed
    if [ "$1" = stall ]; then limit_memory 16M; else limit_memory 128M; fi
}
stall() { observe "${confined[@]}" "${timed[@]}" "$PROGRAMS/squeeze" 32 4; }
healthy() { stall; }
