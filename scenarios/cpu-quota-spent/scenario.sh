# In the twin the cgroup may use two CPUs.
setup() {
    seq 1 250000 >"$STAGE/rows"
    if [ "$1" = stall ]; then quota 20000; else quota 200000; fi
    export TRUTH_OF=throttled TRUTH_FILE=$cpu_stat
}
stall() { observe "${limited[@]}" "${timed[@]}" xz -3 -c "$STAGE/rows" >"$STAGE/rows.xz"; }
healthy() { stall; }
