# In the twin the lock is held for a hundredth of the time.
setup() { precedence; }
stall() { observe "$PROGRAMS/spin" 1000; }
healthy() { observe "$PROGRAMS/spin" 10; }
