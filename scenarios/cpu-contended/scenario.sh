# In the twin nobody of the scenario's is on a CPU. The others have somebody too, so that it is not only its CPU.
setup() {
    seq 1 700000 >"$STAGE/rows"
    local cpu
    if [ "$1" = stall ]; then
        for cpu in $(seq 0 $(($(nproc) - 1))); do
            helper sh -c "echo ready >&3; exec 3>&-; exec taskset -c $cpu yes >/dev/null"
        done
    fi
    export TRUTH_OF=queued
}
stall() { observe taskset -c 0 "${timed[@]}" xz -3 -c "$STAGE/rows" >"$STAGE/rows.xz"; }
healthy() { stall; }
