# Twelve jobs, four at a time, each with a sleep; without the wait the CPUs are what it takes.
# shellcheck source=predictions/first.sh
. "$scenario/../first.sh"
setup() { first; }
stall() { observe sh -c 'seq 12 | xargs -P4 -n1 "$0"' "$PROGRAMS/job"; }
healthy() { observe env WITHOUT=1 sh -c 'seq 12 | xargs -P4 -n1 "$0"' "$PROGRAMS/job"; }
