# In the twin nobody of the scenario's is on a CPU. The others have somebody too, so that it is not only its CPU.
setup() {
    seq 1 700000 >"$STAGE/rows"
    if [ "$1" = stall ]; then
        # shellcheck disable=SC2016 # the helper's shell expands it
        helper sh -c 'for cpu in $(seq 1 $(($(nproc) - 1))); do
            taskset -c "$cpu" yes >/dev/null 3>&- &
        done; echo ready >&3; exec 3>&-; wait'
        precedence 100
        taskset -c 0 yes >/dev/null &
        helpers+=("$!")
    fi
    export TRUTH_OF=queued
}
stall() { observe taskset -c 0 "${timed[@]}" xz -3 -c "$STAGE/rows" >"$STAGE/rows.xz"; }
healthy() { stall; }
