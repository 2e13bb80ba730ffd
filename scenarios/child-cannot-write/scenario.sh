# The twin's child writes less than a pipe holds. Somebody outside interrupts the stall.
setup() { helper python3 "$scenario/interrupt.py" "$STAGE/go"; }
stall() { observe "${gated[@]}" /usr/bin/python3 "$scenario/wait.py" 100000 "$HOLDUP_TRUTH"; }
healthy() { observe "${gated[@]}" /usr/bin/python3 "$scenario/wait.py" 1000 "$HOLDUP_TRUTH"; }
