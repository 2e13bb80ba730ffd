# A job has the lock of a file and sleeps; those that came after it, as cron starts them, wait. In the twin each has its own lock.
setup() {
    local number lock=$STAGE/job.lock
    ordinary_services
    for number in 1 2 3 4; do
        if [ "$1" = healthy ]; then lock=$STAGE/job.$number.lock; fi
        : >"$lock"
        flock "$lock" sleep 1000 &
        helpers+=($!)
        # The first has it.
        until grep -q FLOCK /proc/locks; do sleep 0.05; done
    done
    if [ "$1" = stall ]; then
        until [ "$(grep -c -- '-> FLOCK' /proc/locks)" -ge 3 ]; do sleep 0.1; done
    fi
}
stall() { look_at_machine 1; }
healthy() { look_at_machine 0; }
teardown() {
    pkill -KILL -x sleep --parent "$(IFS=,; echo "${helpers[*]}")" || true
}
