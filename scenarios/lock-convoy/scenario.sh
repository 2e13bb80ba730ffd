# The twin's threads have a mutex each.
setup() { :; }
stall() { observe "$PROGRAMS/convoy" shared; }
healthy() { observe "$PROGRAMS/convoy" own; }
