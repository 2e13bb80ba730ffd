# A service has six clients and two connections to the server behind it, which answers any number at once: two thirds of the requests' time
# pass before they are sent. The twin has a connection for each client, and answers at once.
setup() {
    local limit=2 delay=100 pause=0
    if [ "$1" = healthy ]; then limit=6 delay=1 pause=100; fi
    precedence
    helper python3 "$scenario/service.py" backend 8091 "$delay"
    helper python3 "$scenario/service.py" front 8092 8091 "$limit"
    front=$helper_pid
    helper python3 "$scenario/service.py" clients 8092 "$pause"
}
stall() {
    attach --pid "$front" --duration 4
    truth '"waited_ns": 1, "elapsed_ns": 1'
}
healthy() {
    attach --pid "$front" --duration 4
    truth '"waited_ns": 0, "elapsed_ns": 1'
}
