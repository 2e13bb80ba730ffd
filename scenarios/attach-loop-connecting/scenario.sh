# The connection is older than the observation. The twin's loop has a heartbeat and nothing else.
setup() {
    if [ "$1" = stall ]; then
        black_hole
        helper python3 "$scenario/client.py" 192.0.2.2 5432
    else
        helper python3 "$scenario/client.py"
    fi
    client=$helper_pid
}
stall() {
    attach --pid "$client" --duration 2
    truth '"waited_ns": 1, "elapsed_ns": 1'
}
healthy() {
    attach --pid "$client" --duration 2
    truth '"waited_ns": 0, "elapsed_ns": 1'
}
