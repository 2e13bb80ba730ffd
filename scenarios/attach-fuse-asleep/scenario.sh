# Another daemon serves another file system, and has nothing to do with it. The twin's daemon answers at once: the file is looked
# at, and the program sleeps.
# shellcheck disable=SC2016 # the helper's shell expands it
setup() {
    local delay_ms=1000000
    if [ "$1" = healthy ]; then delay_ms=0; fi
    : >"$STAGE/rows"
    mkdir "$STAGE/mnt" "$STAGE/other"
    helper "$PROGRAMS/slowfs" "$STAGE/other" "$STAGE/rows" 0
    helper "$PROGRAMS/slowfs" "$STAGE/mnt" "$STAGE/rows" "$delay_ms" names
    daemon=$helper_pid
    helper bash -c 'echo ready >&3; exec 3>&-; [ -e "$0/data" ]; exec sleep 1000' "$STAGE/mnt"
    stuck=$helper_pid
    if [ "$1" = stall ]; then
        until grep -q request_wait_answer "/proc/$stuck/wchan"; do :; done
    else
        until grep -q sleep "/proc/$stuck/comm" && grep -q '^State:.S' "/proc/$stuck/status"; do :; done
    fi
}
stall() {
    attach --pid "$stuck" --duration 1
    truth "\"waited_ns\": 1, \"elapsed_ns\": 1, \"holder_pid\": $daemon"
}
healthy() { look_at "$stuck" 0; }
