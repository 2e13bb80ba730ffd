# Faster computing gains nothing: what is waited for comes later than its end.
# shellcheck source=predictions/first.sh
. "$scenario/../first.sh"
setup() {
    first
    mkfifo "$STAGE/bytes"
    helper python3 "$here/feed.py" "$STAGE/bytes" 0.05
}
stall() { observe "$PROGRAMS/compute-beside-fifo" "$STAGE/bytes"; }
healthy() { observe env WITHOUT=1 "$PROGRAMS/compute-beside-fifo" "$STAGE/bytes"; }
