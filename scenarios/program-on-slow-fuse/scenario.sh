# The twin's daemon answers at once.
setup() {
    local delay_ms=500
    if [ "$1" = healthy ]; then delay_ms=0; fi
    mkdir "$STAGE/mnt"
    helper "$PROGRAMS/slowfs" "$STAGE/mnt" /bin/true "$delay_ms"
    truth "\"holder_pid\": $helper_pid"
}
# shellcheck disable=SC2016 # the observed shell expands it
stall() { observe "${timed[@]}" bash -c '"$0"; exit 0' "$STAGE/mnt/data"; }
healthy() { stall; }
