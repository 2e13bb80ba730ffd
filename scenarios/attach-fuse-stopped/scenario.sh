# The name is relative, and only its memory knows it; another daemon serves another file system, and has nothing to do with it. In
# the twin the daemon is not stopped: the file is opened, and the program sleeps.
# shellcheck disable=SC2016 # the helper's shell expands it
setup() {
    : >"$STAGE/rows"
    mkdir "$STAGE/mnt" "$STAGE/other"
    helper "$PROGRAMS/slowfs" "$STAGE/other" "$STAGE/rows" 0
    helper "$PROGRAMS/slowfs" "$STAGE/mnt" "$STAGE/rows" 0
    daemon=$helper_pid
    helper bash -c 'cd "$0"; echo ready >&3; exec 3>&-; read -r _ <"$STAGE/go"; exec <data; exec sleep 1000' "$STAGE/mnt"
    stuck=$helper_pid
    if [ "$1" = stall ]; then
        kill -STOP "$daemon"
        until grep -q '^State:.T' "/proc/$daemon/status"; do :; done
    fi
    echo >"$STAGE/go"
    if [ "$1" = stall ]; then
        until grep -q request_wait_answer "/proc/$stuck/wchan"; do :; done
    else
        until grep -q sleep "/proc/$stuck/comm" && grep -q '^State:.S' "/proc/$stuck/status"; do :; done
    fi
}
stall() {
    attach --pid "$stuck" --duration 1
    truth "\"waited_ns\": 1, \"elapsed_ns\": 1, \"holder_pid\": $daemon"
    # Stopped, it would not end when it is told to.
    kill -CONT "$daemon"
}
healthy() { look_at "$stuck" 0; }
