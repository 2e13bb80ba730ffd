# The twin's other process holds a lock on other bytes of the file.
setup() {
    local offset=0
    if [ "$1" = healthy ]; then offset=4096; fi
    : >"$STAGE/table.db"
    helper python3 "$scenario/hold.py" "$STAGE/table.db" "$offset" "$STAGE/go"
    truth "\"holder_pid\": $helper_pid"
}
stall() { observe "${gated[@]}" "${timed[@]}" python3 -c 'import fcntl, sys
with open(sys.argv[1], "r+b") as table:
    fcntl.lockf(table, fcntl.LOCK_EX, 100, 0)' "$STAGE/table.db"; }
healthy() { stall; }
