# Jobs queue for the lock of a file; one of them has it and asks a server, which is stopped. In the twin the server answers.
setup() {
    local number
    ordinary_services
    helper python3 "$scenario/../host-stopped-server/licences.py" serve 7101
    server=$helper_pid
    if [ "$1" = stall ]; then kill -STOP "$server"; fi
    for number in 1 2 3; do
        python3 "$scenario/../host-stopped-server/licences.py" take 7101 "$STAGE/licence.lock" &
        helpers+=($!)
    done
    if [ "$1" = stall ]; then
        until [ "$(grep -c -- '-> FLOCK' /proc/locks)" -ge 2 ]; do sleep 0.1; done
    fi
}
stall() {
    look_at_machine 1
    kill -CONT "$server"
}
healthy() { look_at_machine 0; }
