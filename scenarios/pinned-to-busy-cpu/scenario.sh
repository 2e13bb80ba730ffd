# In the twin it may run on every CPU. Where other work keeps the other CPUs busy, being bound is not the trouble.
setup() {
    precedence 100
    seq 1 500000 >"$STAGE/rows"
    helper sh -c 'echo ready >&3; exec 3>&-; exec taskset -c 0 yes >/dev/null'
    export TRUTH_OF=queued
}
stall() { observe taskset -c 0 "${timed[@]}" xz -3 -c "$STAGE/rows" >"$STAGE/rows.xz"; }
healthy() { observe "${timed[@]}" xz -3 -c "$STAGE/rows" >"$STAGE/rows.xz"; }
