# The twin's worker writes at once.
setup() { :; }
stall() { observe "$PROGRAMS/late" 1; }
healthy() { observe "$PROGRAMS/late" 0; }
