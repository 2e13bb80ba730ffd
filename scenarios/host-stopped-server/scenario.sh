# The twin's server answers. Another server and its clients do their ordinary work beside both.
setup() {
    local number
    helper python3 "$scenario/licences.py" serve 7102
    for number in 1 2; do
        python3 "$scenario/licences.py" ask 7102 &
        helpers+=($!)
    done
    helper python3 "$scenario/licences.py" serve 7101
    server=$helper_pid
    if [ "$1" = stall ]; then kill -STOP "$server"; fi
    for number in 1 2 3; do
        python3 "$scenario/licences.py" take 7101 "$STAGE/licence.lock" &
        helpers+=($!)
    done
    if [ "$1" = stall ]; then
        until [ "$(grep -c -- '-> FLOCK' /proc/locks)" -ge 2 ]; do sleep 0.1; done
    fi
}
stall() {
    host --duration 3
    truth '"waited_ns": 1, "elapsed_ns": 1'
    kill -CONT "$server"
}
healthy() {
    host --duration 3
    truth '"waited_ns": 0, "elapsed_ns": 1'
}
