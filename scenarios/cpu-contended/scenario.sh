# In the twin nobody of the scenario's is on that CPU.
setup() {
    seq 1 700000 >"$STAGE/rows"
    if [ "$1" = stall ]; then
        helper sh -c 'echo ready >&3; exec 3>&-; exec taskset -c 0 yes >/dev/null'
    fi
    export TRUTH_OF=queued
}
stall() { observe taskset -c 0 "${timed[@]}" xz -3 -c "$STAGE/rows" >"$STAGE/rows.xz"; }
healthy() { stall; }
