# The twin's thread asks for another lock.
setup() { :; }
stall() { observe "$PROGRAMS/held" threads rwlock same; }
healthy() { observe "$PROGRAMS/held" threads rwlock other; }
