# The twin's child asks for a lock that nobody had.
setup() { :; }
stall() { observe "$PROGRAMS/copied" same; }
healthy() { observe "$PROGRAMS/copied" other; }
