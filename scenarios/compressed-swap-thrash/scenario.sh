# The twin's cgroup has room for all of it.
setup() {
    export TRUTH_OF=cpu
    swap_compressed
    if [ "$1" = stall ]; then limit_memory 16M; else limit_memory 128M; fi
}
# Nine passes: on a fast machine three are over in 0.2 s, and starting and ending the program are a twentieth of that.
stall() { observe "${confined[@]}" "${timed[@]}" "$PROGRAMS/thrash" 32 9; }
healthy() { stall; }
