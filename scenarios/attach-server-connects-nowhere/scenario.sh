# A server makes a connection to a program behind it for each page, and that one does not answer; another client is answered at
# once, every 20 ms. In the twin the program behind it is there, and fast.
setup() {
    if [ "$1" = stall ]; then
        black_hole
    else
        own_address
        helper python3 "$here/http_server.py" tcp 192.0.2.2:8086 0
    fi
    helper node "$scenario/front.js" 8084 192.0.2.2 8086
    front=$helper_pid
    helper node "$scenario/clients.js" 8084
}
stall() { truth_of_blocked "$front" attach --pid "$front" --duration 2; }
healthy() {
    attach --pid "$front" --duration 2
    truth '"waited_ns": 0, "elapsed_ns": 1'
}
