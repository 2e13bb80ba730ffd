# In the twin no task is slower than the others.
setup() { :; }
stall() { observe "$PROGRAMS/pool" 1200; }
healthy() { observe "$PROGRAMS/pool" 20; }
