# The twin's supervisor decides at once.
setup() {
    local delay_ms=100
    if [ "$1" = healthy ]; then delay_ms=0; fi
    helper "$PROGRAMS/supervisor" "$STAGE/listener" "$delay_ms"
    truth "\"holder_pid\": $helper_pid"
}
stall() { observe "$PROGRAMS/sandbox" "$STAGE/listener"; }
healthy() { stall; }
