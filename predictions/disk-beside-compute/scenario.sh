# Faster disks gain nothing: the writes are done before the computing is.
# shellcheck source=predictions/first.sh
. "$scenario/../first.sh"
setup() {
    loop_disk
    first
    throttle write_iops 60
}
stall() { observe "$PROGRAMS/disk-beside-compute" "$STAGE/mnt"; }
healthy() { observe "$PROGRAMS/disk-beside-compute" "$STAGE/ram"; }
