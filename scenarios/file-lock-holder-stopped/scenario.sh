# The shell that has the lock is stopped, as by Ctrl-Z. The twin's shell is, too, and has another lock.
setup() {
    local lock=job.lock
    if [ "$1" = healthy ]; then lock=other.lock; fi
    # shellcheck disable=SC2016 # the helper's shell expands them
    own_helper bash -c 'exec 9>"$0"; flock 9; echo ready >&3; exec 3>&-; kill -STOP $$' "$STAGE/$lock"
    until [ "$(cut -d ' ' -f 3 "/proc/$helper_pid/stat")" = T ]; do :; done
    truth "\"holder_pid\": $helper_pid"
}
stall() {
    observe "${timed[@]}" flock -w 1 "$STAGE/job.lock" true
    # Stopped, it would not end when it is told to.
    kill -CONT "$helper_pid"
}
healthy() { stall; }
