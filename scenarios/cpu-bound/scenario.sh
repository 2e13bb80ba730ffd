# The twin compresses a thousandth of it.
setup() {
    precedence
    seq 1 3500000 >"$STAGE/rows"
    seq 1 3500 >"$STAGE/few"
    export TRUTH_OF=cpu
}
stall() { observe "${timed[@]}" gzip -6 -c "$STAGE/rows" >"$STAGE/rows.gz"; }
healthy() { observe "${timed[@]}" gzip -6 -c "$STAGE/few" >"$STAGE/rows.gz"; }
