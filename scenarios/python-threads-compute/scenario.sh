# The twin's pieces of work are done by one thread, one after the other.
#
# On one CPU, because two decide by chance who wakes whom: a thread that waits for the lock looks up every 5 ms and asks
# for it, and if another CPU lets go before it has lain down again, its wait was ended by its own timer and by nobody.
setup() { :; }
stall() { observe taskset -c 0 python3 "$scenario/compute.py" 2 "$HOLDUP_TRUTH"; }
healthy() { observe taskset -c 0 python3 "$scenario/compute.py" 1 "$HOLDUP_TRUTH"; }
