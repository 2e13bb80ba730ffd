# The twin's server answers at once.
setup() { :; }
stall() { observe "$PROGRAMS/local" 150; }
healthy() { observe "$PROGRAMS/local" 0; }
