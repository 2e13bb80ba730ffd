# The twin's cgroup has room for the file, which is in memory already.
setup() {
    loop_disk
    head -c 12M /dev/urandom >"$STAGE/mnt/table"
    make_cold
    throttle read_bps 33554432
    if [ "$1" = stall ]; then limit_memory 10M; else limit_memory 64M; fi
    # shellcheck disable=SC2016 # the shell in there expands them
    "${confined[@]}" sh -c 'while cat "$0" >/dev/null; do sleep 0.1; done' "$STAGE/mnt/table" &
    helpers+=($!)
    # It has read the file once.
    sleep 1.5
}
stall() {
    host --duration 3
    truth '"waited_ns": 1, "elapsed_ns": 1'
}
healthy() {
    host --duration 3
    truth '"waited_ns": 0, "elapsed_ns": 1'
}
teardown() {
    kill "${helpers[@]}" 2>/dev/null || true
    wait "${helpers[@]}" 2>/dev/null || true
}
