# The twin's thread asks for another lock.
setup() { :; }
stall() { observe "$PROGRAMS/held" threads priority same; }
healthy() { observe "$PROGRAMS/held" threads priority other; }
