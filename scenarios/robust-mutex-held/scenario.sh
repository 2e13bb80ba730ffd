# The twin's thread asks for another lock.
setup() { :; }
stall() { observe "$PROGRAMS/held" threads robust same; }
healthy() { observe "$PROGRAMS/held" threads robust other; }
