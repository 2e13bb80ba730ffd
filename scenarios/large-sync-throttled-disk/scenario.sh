# The twin has the same disk without the limit.
setup() {
    loop_disk
    if [ "$1" = stall ]; then throttle write_bps 2097152; fi
}
stall() { observe "${timed[@]}" dd if=/dev/zero of="$STAGE/mnt/dump" bs=2M count=1 conv=fsync status=none; }
healthy() { stall; }
