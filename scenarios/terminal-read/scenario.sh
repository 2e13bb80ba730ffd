# The twin's line is there before it is read.
setup() {
    helper python3 "$scenario/terminal.py" "$1" "$STAGE/terminal" "$STAGE/go"
}
stall() { observe "${gated[@]}" "${timed[@]}" head -n 1 <"$(cat "$STAGE/terminal")" >"$STAGE/line"; }
healthy() { stall; }
