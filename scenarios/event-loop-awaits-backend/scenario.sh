# One event loop fetches a page from a program behind it, which takes 400 ms, and meanwhile answers another client every 20 ms. The
# twin's client speaks HTTP/2: after an answer it sends something more, and nobody answers that.
setup() {
    precedence
    helper node "$scenario/service.js" backend 8086 400
    backend=$helper_pid
    helper node "$scenario/service.js" front 8084 8086
    front=$helper_pid
    if [ "$1" = stall ]; then
        helper node "$scenario/clients.js" page 8084
    else
        helper node "$scenario/clients.js" much 8085
    fi
}
stall() {
    attach --pid "$front" --duration 2
    truth "\"waited_ns\": 1, \"elapsed_ns\": 1, \"holder_pid\": $backend"
}
healthy() {
    attach --pid "$front" --duration 2
    truth '"waited_ns": 0, "elapsed_ns": 1'
}
