# The twin's terminal is not held.
setup() {
    helper python3 "$scenario/hold.py" "$1" "$STAGE/terminal" "$STAGE/go"
}
stall() { observe "${gated[@]}" "${timed[@]}" head -c 100000 /dev/zero >"$(cat "$STAGE/terminal")"; }
healthy() { stall; }
