# The twin's other process holds another lock.
setup() {
    local lock=job.lock
    if [ "$1" = healthy ]; then lock=other.lock; fi
    # shellcheck disable=SC2016 # the helper's shell expands them
    helper flock "$STAGE/$lock" sh -c 'echo ready >&3; exec 3>&-; read -r _ <"$STAGE/go"; exec sleep 1'
    truth "\"holder_pid\": $helper_pid"
}
stall() { observe "${gated[@]}" "${timed[@]}" flock "$STAGE/job.lock" true; }
healthy() { stall; }
