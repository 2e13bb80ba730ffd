# A client asks for a page, for which an event loop asks a program behind it, which never answers. All of that was before anybody
# looked. The twin's client has its answer, and keeps its connection.
setup() {
    helper node "$scenario/service.js" backend 8094
    backend=$helper_pid
    helper node "$scenario/service.js" front 8095 8094
    front=$helper_pid
    if [ "$1" = stall ]; then
        helper node "$scenario/service.js" client 8095 /page
    else
        helper node "$scenario/service.js" client 8095 /
    fi
    # The front has asked: its connection to the backend is there.
    until [ "$1" = healthy ] || ss -Htn state established dst 127.0.0.1:8094 | grep -q .; do :; done
}
stall() {
    attach --pid "$front" --duration 2
    truth "\"waited_ns\": 1, \"elapsed_ns\": 1, \"holder_pid\": $backend"
}
healthy() {
    attach --pid "$front" --duration 2
    truth '"waited_ns": 0, "elapsed_ns": 1'
}
