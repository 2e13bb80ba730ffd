# In the twin the first stage is the faster one.
setup() { :; }
stall() { observe "$PROGRAMS/stages" 12 8; }
healthy() { observe "$PROGRAMS/stages" 1 8; }
