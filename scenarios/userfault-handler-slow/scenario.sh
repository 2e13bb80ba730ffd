# The twin's handler fills each page at once.
setup() {
    local delay_ms=100
    if [ "$1" = healthy ]; then delay_ms=0; fi
    helper "$PROGRAMS/pager" "$STAGE/faults" "$delay_ms"
    truth "\"holder_pid\": $helper_pid"
}
stall() { observe "$PROGRAMS/paged" "$STAGE/faults"; }
healthy() { stall; }
