# A client asks a Python service for something that needs a lock, which an export in the background has taken and keeps. That was
# before anybody looked, and to the kernel the thread looks like one that is parked. The twin's client asks for something else, and
# has its answer.
setup() {
    helper python3 "$scenario/service.py" 8090
    service=$helper_pid
    if [ "$1" = stall ]; then
        helper python3 "$scenario/client.py" 8090 /order
    else
        helper python3 "$scenario/client.py" 8090 /
    fi
}
stall() {
    attach --pid "$service" --duration 2
    truth '"waited_ns": 1, "elapsed_ns": 1'
}
healthy() {
    attach --pid "$service" --duration 2
    truth '"waited_ns": 0, "elapsed_ns": 1'
}
