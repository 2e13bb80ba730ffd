# Each of three workers asks a program behind them for each client, and there are five clients. In the twin that program answers at once.
setup() {
    helper python3 "$scenario/service.py" "$1"
    service=$helper_pid
}
stall() {
    attach --pid "$service" --duration 2
    truth '"waited_ns": 1, "elapsed_ns": 1'
}
healthy() {
    attach --pid "$service" --duration 2
    truth '"waited_ns": 0, "elapsed_ns": 1'
}
