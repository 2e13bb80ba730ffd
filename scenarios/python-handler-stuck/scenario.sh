# Four clients have kept their connections after a first answer. Then one asks for a report, for which its thread asks another
# service, which does not answer. The twin's four clients have had their answers and ask for nothing.
setup() {
    helper python3 "$here/backend.py" 8081 1000
    backend=$helper_pid
    helper python3 "$scenario/service.py" 8083 8081
    service=$helper_pid
    if [ "$1" = stall ]; then
        helper python3 "$here/clients.py" 8083 / / / /report
    else
        helper python3 "$here/clients.py" 8083 / / / /
    fi
}
stall() {
    attach --pid "$service" --duration 2
    # One thread waits all the time for what a client wants; all others wait for clients.
    truth "\"waited_ns\": 1, \"elapsed_ns\": 1, \"holder_pid\": $backend"
}
healthy() {
    attach --pid "$service" --duration 2
    truth '"waited_ns": 0, "elapsed_ns": 1'
}
