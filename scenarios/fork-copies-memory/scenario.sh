# The twin starts its programs by posix_spawn.
setup() { :; }
stall() { observe "$PROGRAMS/large" fork; }
healthy() { observe "$PROGRAMS/large" spawn; }
