# Whatever comes in, the loop asks the program behind it for something, which never answers. Of the stall the clients wait for
# what comes of it. The twin's close at once, as those do that wake Postfix's queue manager: nobody waits.
setup() {
    precedence
    local manner=asks
    if [ "$1" = healthy ]; then manner=tells; fi
    helper python3 "$scenario/service.py" agent
    agent=$helper_pid
    helper python3 "$scenario/service.py" loop "$STAGE/socket"
    loop=$helper_pid
    helper python3 "$scenario/service.py" "$manner" "$STAGE/socket" "$STAGE/go"
}
stall() {
    echo >"$STAGE/go"
    attach --pid "$loop" --duration 2
    truth "\"waited_ns\": 1, \"elapsed_ns\": 1, \"holder_pid\": $agent"
}
healthy() {
    echo >"$STAGE/go"
    attach --pid "$loop" --duration 2
    truth '"waited_ns": 0, "elapsed_ns": 1'
}
