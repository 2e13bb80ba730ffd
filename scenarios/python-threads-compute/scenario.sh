# The twin's pieces of work are done by one thread, one after the other.
setup() { :; }
stall() { observe python3 "$scenario/compute.py" 2 "$HOLDUP_TRUTH"; }
healthy() { observe python3 "$scenario/compute.py" 1 "$HOLDUP_TRUTH"; }
