# A FIFO into which something that is not observed writes a byte each 20 ms; without the wait: all at once.
# shellcheck source=predictions/first.sh
. "$scenario/../first.sh"
setup() {
    first
    mkfifo "$STAGE/bytes"
    case $1 in
    stall) helper python3 "$here/feed.py" "$STAGE/bytes" 0.02 ;;
    healthy) helper python3 "$here/feed.py" "$STAGE/bytes" 0 ;;
    esac
}
stall() { observe "$PROGRAMS/takes-bytes" "$STAGE/bytes"; }
healthy() { observe "$PROGRAMS/takes-bytes" "$STAGE/bytes"; }
