# The twin's run, are not frozen, have descriptors to spare, and its file has a name.
setup() {
    mkdir -p "$STAGE/ram"
    mount -t tmpfs none "$STAGE/ram"
    if [ "$1" = stall ]; then
        helper "$PROGRAMS/stuck" stops
        stuck=$helper_pid
        until grep -q '^State:.T' "/proc/$stuck/status"; do :; done
    fi
    # Its room is not free: 80 MB.
    head -c 80000000 /dev/zero >"$STAGE/ram/log"
    sleep 1000 9<"$STAGE/ram/log" &
    helpers+=($!)
    if [ "$1" = stall ]; then
        rm "$STAGE/ram/log"
    fi
    helper python3 "$scenario/opens.py" "$([ "$1" = stall ] && echo 250 || echo 30)"
    freezer_cgroup
    sleep 1000 &
    helpers+=($!)
    echo $! >"$cgroup/cgroup.procs"
    if [ "$1" = stall ]; then
        freeze
    fi
}
stall() {
    host --duration 2
    truth '"waited_ns": 1, "elapsed_ns": 1'
    kill -CONT "$stuck"
    thaw
}
healthy() {
    host --duration 2
    truth '"waited_ns": 0, "elapsed_ns": 1'
}
teardown() { thaw; }
