# The twin's bank answers at once.
setup() {
    local delay=1000
    if [ "$1" = healthy ]; then delay=0; fi
    precedence
    compile_java
    helper python3 "$scenario/bank.py" 8091 "$delay"
    bank=$helper_pid
    helper "${java[@]}" com.shop.Payment "$1" 8091
}
stall() {
    attach --pid "$helper_pid" --duration 1
    # Two wait for the bank; the main thread sleeps.
    truth "\"waited_ns\": 2, \"elapsed_ns\": 3, \"holder_pid\": $bank"
}
healthy() { look_at "$helper_pid" 0; }
