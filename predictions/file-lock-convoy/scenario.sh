# Processes that queue for one file's lock; without the wait: each has its own file.
# shellcheck source=predictions/first.sh
. "$scenario/../first.sh"
setup() { first; }
stall() { observe "$PROGRAMS/file-locks" "$STAGE"; }
healthy() { observe env WITHOUT=1 "$PROGRAMS/file-locks" "$STAGE"; }
