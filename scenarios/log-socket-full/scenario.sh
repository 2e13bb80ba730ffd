# The twin's daemon reads. The socket is systemd's, in a /run of the scenario's own.
setup() {
    mount -t tmpfs tmpfs /run
    mkdir -p /run/systemd/journal
    head -c 20000 /dev/zero | tr '\0' 'x' | fold -w 50 >"$STAGE/lines"
    helper python3 "$scenario/daemon.py" "$1" /run/systemd/journal/dev-log "$STAGE/go"
    truth "\"holder_pid\": $helper_pid"
}
stall() {
    observe "${gated[@]}" "${timed[@]}" logger --socket-errors=on -u /run/systemd/journal/dev-log -f "$STAGE/lines"
}
healthy() { stall; }
