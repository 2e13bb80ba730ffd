# A pool whose threads all come to wait for one disk, which takes 40 writes a second; without the wait: memory.
# shellcheck source=predictions/first.sh
. "$scenario/../first.sh"
setup() {
    loop_disk
    first
    throttle write_iops 40
}
stall() { observe "$PROGRAMS/pool" "$STAGE/mnt"; }
healthy() { observe "$PROGRAMS/pool" "$STAGE/ram"; }
