# The twin's handler sets a flag and does nothing else.
setup() { :; }
stall() { observe "$PROGRAMS/interrupted" localtime; }
healthy() { observe "$PROGRAMS/interrupted" flag; }
