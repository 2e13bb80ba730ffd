# The twin sleeps for no time.
setup() { :; }
stall() { observe "${timed[@]}" sleep 1; }
healthy() { observe "${timed[@]}" sleep 0; }
