# The twin's threads have an arena each.
setup() { :; }
stall() { observe env MALLOC_ARENA_MAX=1 "$PROGRAMS/allocate"; }
healthy() { observe "$PROGRAMS/allocate"; }
