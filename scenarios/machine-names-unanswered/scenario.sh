# A service looks up a name for each of its clients, and the name server is silent. The twin's answers.
setup() {
    local manner=silent
    if [ "$1" = healthy ]; then manner=answers; fi
    own_resolver
    ordinary_services
    helper python3 "$here/nameserver.py" "$manner"
    helper python3 "$here/service.py" 7101 2 resolve db.shop.test
}
stall() {
    record_machine 7
    truth '"waited_ns": 1, "elapsed_ns": 1'
}
healthy() {
    record_machine 7
    truth '"waited_ns": 0, "elapsed_ns": 1'
}
