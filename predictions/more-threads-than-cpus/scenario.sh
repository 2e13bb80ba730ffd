# Two threads that compute on one CPU; without the wait: a CPU for each.
# shellcheck source=predictions/first.sh
. "$scenario/../first.sh"
setup() { first; }
stall() { observe taskset --cpu-list 0 "$PROGRAMS/hogs"; }
healthy() { observe taskset --cpu-list 0,1 "$PROGRAMS/hogs"; }
