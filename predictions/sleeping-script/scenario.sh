# A script that sleeps between its steps; without the wait: for no time.
# shellcheck source=predictions/first.sh
. "$scenario/../first.sh"
setup() { first; }
stall() { observe bash "$scenario/script.sh" "$PROGRAMS/work" 0.4 0.25; }
healthy() { observe bash "$scenario/script.sh" "$PROGRAMS/work" 0 0; }
