# The twin's reader does not pause.
setup() {
    local pause=0.05
    if [ "$1" = healthy ]; then pause=0; fi
    mkfifo "$STAGE/queue"
    own_helper python3 "$scenario/read.py" "$STAGE/queue" "$pause"
    truth "\"holder_pid\": $helper_pid"
}
stall() { observe "${timed[@]}" dd if=/dev/zero of="$STAGE/queue" bs=64k count=20 status=none; }
healthy() { stall; }
