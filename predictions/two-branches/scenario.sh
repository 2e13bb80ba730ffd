# Two branches of nearly equal length; without the wait of the longer one the other is what it takes.
# shellcheck source=predictions/first.sh
. "$scenario/../first.sh"
setup() {
    first
    mkfifo "$STAGE/bytes"
    helper python3 "$here/feed.py" "$STAGE/bytes" 0.07
}
stall() { observe "$PROGRAMS/two-branches" "$STAGE/bytes"; }
healthy() { observe env WITHOUT=1 "$PROGRAMS/two-branches" "$STAGE/bytes"; }
