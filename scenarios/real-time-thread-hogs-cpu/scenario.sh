# In the twin that task is not there.
setup() {
    seq 1 200000 >"$STAGE/rows"
    if [ "$1" = stall ]; then
        helper taskset -c 0 "$PROGRAMS/hog"
    fi
    # Only now: a real-time policy is for the root cgroup.
    precedence 100
    export TRUTH_OF=queued
}
stall() { observe taskset -c 0 "${timed[@]}" xz -3 -c "$STAGE/rows" >"$STAGE/rows.xz"; }
healthy() { stall; }
