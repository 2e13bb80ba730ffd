# The shell has the lock that flock took for it; flock has ended. The twin's shell has another lock.
setup() {
    local lock=job.lock
    if [ "$1" = healthy ]; then lock=other.lock; fi
    # shellcheck disable=SC2016 # the helper's shell expands them
    own_helper bash -c 'exec 9>"$0"; flock 9; echo ready >&3; exec 3>&-; read -r _ <"$STAGE/go"; sleep 1 9>&-; :' "$STAGE/$lock"
    truth "\"holder_pid\": $helper_pid"
}
stall() { observe "${gated[@]}" "${timed[@]}" flock "$STAGE/job.lock" true; }
healthy() { stall; }
