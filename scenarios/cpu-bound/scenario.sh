# The twin compresses a thousandth of it. The truth is all of its CPU time, of which the kernel's part differs from machine to machine: it
# compresses as hard as it can, and writes to nothing, so that this part is small.
setup() {
    precedence
    seq 1 3500000 >"$STAGE/rows"
    seq 1 3500 >"$STAGE/few"
    export TRUTH_OF=cpu
}
stall() { observe "${timed[@]}" gzip -9 -c "$STAGE/rows" >/dev/null; }
healthy() { observe "${timed[@]}" gzip -9 -c "$STAGE/few" >/dev/null; }
