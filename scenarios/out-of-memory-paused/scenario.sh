# The twin's cgroup has room enough.
setup() {
    if [ "$1" = stall ]; then limit_memory 32M; else limit_memory 128M; fi
    echo 1 >"$memory_cgroup/memory.oom_control"
    helper python3 "$scenario/raise.py" "$1" "$STAGE/go" "$memory_cgroup"
    truth "\"holder_pid\": $helper_pid"
}
stall() { observe "${confined[@]}" "$PROGRAMS/grow" "$STAGE/go" 64; }
healthy() { stall; }
teardown() { echo 0 >"$memory_cgroup/memory.oom_control"; }
