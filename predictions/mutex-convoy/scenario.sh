# Threads that queue for one mutex; without the wait: each has its own.
# shellcheck source=predictions/first.sh
. "$scenario/../first.sh"
setup() { first; }
stall() { observe "$PROGRAMS/mutex-convoy"; }
healthy() { observe env WITHOUT=1 "$PROGRAMS/mutex-convoy"; }
