# The twin's cgroup has room for all of it.
setup() {
    export TRUTH_OF=cpu
    swap_compressed
    if [ "$1" = stall ]; then limit_memory 16M; else limit_memory 128M; fi
}
stall() { observe "${confined[@]}" "${timed[@]}" "$PROGRAMS/thrash" 32 3; }
healthy() { stall; }
