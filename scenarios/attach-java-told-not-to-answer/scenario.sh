# The shop waits for the lock on its till, which a program in Python has. In the twin that has locked other bytes, and the shop rests.
setup() {
    precedence
    compile_java
    unknown_layout
    local offset=0
    if [ "$1" = healthy ]; then offset=4096; fi
    : >"$STAGE/till"
    helper python3 "$scenario/hold.py" "$STAGE/till" "$offset"
    truth "\"holder_pid\": $helper_pid"
    helper "${java[@]}" -XX:+DisableAttachMechanism com.shop.Till "$STAGE/till"
}
stall() {
    attach --pid "$helper_pid" --duration 1.5
    truth '"waited_ns": 1, "elapsed_ns": 1'
}
healthy() {
    attach --pid "$helper_pid" --duration 1.5
    truth '"waited_ns": 0, "elapsed_ns": 1'
}
