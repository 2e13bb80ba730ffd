# The twin's other process holds a lock on other bytes of the file.
setup() {
    local offset=0
    if [ "$1" = healthy ]; then offset=4096; fi
    mkdir -p "$STAGE/dpkg"
    : >"$STAGE/dpkg/lock"
    helper python3 "$here/../record-lock-held/hold.py" "$STAGE/dpkg/lock" "$offset" "$STAGE/go"
    truth "\"holder_pid\": $helper_pid"
}
stall() { observe "${gated[@]}" "${timed[@]}" python3 -c 'import fcntl, sys
with open(sys.argv[1], "r+b") as lock:
    fcntl.lockf(lock, fcntl.LOCK_EX, 100, 0)' "$STAGE/dpkg/lock"; }
healthy() { stall; }
