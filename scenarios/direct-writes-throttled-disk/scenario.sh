# The twin has the same disk without the limit.
setup() {
    loop_disk
    if [ "$1" = stall ]; then throttle write_iops 40; fi
}
stall() { observe "${timed[@]}" dd if=/dev/zero of="$STAGE/mnt/dump" bs=4k count=50 oflag=direct status=none; }
healthy() { stall; }
