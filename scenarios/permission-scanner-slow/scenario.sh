# The twin's scanner decides at once.
setup() {
    local delay_ms=100 file
    if [ "$1" = healthy ]; then delay_ms=0; fi
    mkdir "$STAGE/mnt"
    mount -t tmpfs none "$STAGE/mnt"
    for file in {1..10}; do seq 100 >"$STAGE/mnt/$file"; done
    helper "$PROGRAMS/scanner" "$STAGE/mnt" "$delay_ms"
    truth "\"holder_pid\": $helper_pid"
}
stall() { observe "${timed[@]}" cat "$STAGE"/mnt/{1..10}; }
healthy() { stall; }
