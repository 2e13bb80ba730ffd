# In the twin it has the CPU for itself.
setup() {
    precedence 100
    seq 1 100000 >"$STAGE/rows"
    if [ "$1" = stall ]; then
        helper sh -c 'echo ready >&3; exec 3>&-; exec taskset -c 0 yes >/dev/null'
    fi
    export TRUTH_OF=queued
}
stall() { observe taskset -c 0 nice -n 11 "${timed[@]}" xz -3 -c "$STAGE/rows" >"$STAGE/rows.xz"; }
healthy() { stall; }
