# The twin's device may have as many dirty pages as any.
setup() {
    loop_disk
    if [ "$1" = stall ]; then dirty_limit 262144; fi
}
stall() { observe "${timed[@]}" dd if=/dev/zero of="$STAGE/mnt/dump" bs=64k count=320 status=none; }
healthy() { stall; }
