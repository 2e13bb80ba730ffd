# The twin's threads lock the accounts in one order.
setup() { :; }
stall() { observe timeout 1 "$PROGRAMS/bank" opposite; }
healthy() { observe timeout 1 "$PROGRAMS/bank" same; }
