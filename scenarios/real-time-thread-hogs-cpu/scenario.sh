# In the twin the task is on another CPU's time: it is not there at all.
setup() {
    seq 1 200000 >"$STAGE/rows"
    if [ "$1" = stall ]; then
        helper taskset -c 0 "$PROGRAMS/hog"
    fi
    export TRUTH_OF=queued
}
stall() { observe taskset -c 0 "${timed[@]}" xz -3 -c "$STAGE/rows" >"$STAGE/rows.xz"; }
healthy() { stall; }
