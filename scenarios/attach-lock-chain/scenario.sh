# Who has the lock waits for its child, which reads from a pipe into which one would write that sleeps. Of the twin the
# holder is done before anybody wants the lock, and the one that is looked at has work to wait for: nothing but a clock.
setup() {
    mkfifo "$STAGE/pipe"
    sleep 1000 >"$STAGE/pipe" &
    helpers+=("$!")
    if [ "$1" = stall ]; then
        flock "$STAGE/job.lock" sh -c 'cat <"$0"; :' "$STAGE/pipe" &
        holder=$!
        helpers+=("$holder")
        until [ -e "$STAGE/job.lock" ] && ! flock --nonblock "$STAGE/job.lock" true; do :; done
        flock "$STAGE/job.lock" true &
    else
        sleep 1000 &
    fi
    stuck=$!
    helpers+=("$stuck")
}
stall() {
    until grep -q flock "/proc/$stuck/comm" && grep -q '^State:.S' "/proc/$stuck/status"; do :; done
    attach --pid "$stuck" --duration 1
    truth "\"waited_ns\": 1, \"elapsed_ns\": 1, \"holder_pid\": $holder"
}
healthy() { look_at "$stuck" 0; }
