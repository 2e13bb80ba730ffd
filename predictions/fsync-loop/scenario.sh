# A disk that takes 100 writes a second; without the wait: memory.
# shellcheck source=predictions/first.sh
. "$scenario/../first.sh"
setup() {
    loop_disk
    first
    throttle write_iops 100
}
stall() { observe "$PROGRAMS/fsync-loop" "$STAGE/mnt"; }
healthy() { observe "$PROGRAMS/fsync-loop" "$STAGE/ram"; }
