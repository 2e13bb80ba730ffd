# Consumers that sleep with each thing keep the producer waiting; without the wait making things is what it takes.
# shellcheck source=predictions/first.sh
. "$scenario/../first.sh"
setup() { first; }
stall() { observe "$PROGRAMS/producer-consumer"; }
healthy() { observe env WITHOUT=1 "$PROGRAMS/producer-consumer"; }
