# The twin does all pieces in one thread.
setup() { :; }
stall() { observe "$PROGRAMS/churn" many; }
healthy() { observe "$PROGRAMS/churn" one; }
