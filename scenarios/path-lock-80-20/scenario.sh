# In the twin each has a lock of its own.
setup() { :; }
stall() { observe "$PROGRAMS/turns" shared; }
healthy() { observe "$PROGRAMS/turns" own; }
