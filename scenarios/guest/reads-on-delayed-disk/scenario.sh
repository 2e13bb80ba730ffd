# The twin's disk answers at once.
setup() {
    local delay_ms=50 device
    if [ "$1" = healthy ]; then delay_ms=0; fi
    loop_disk
    seq 1 700000 >"$STAGE/mnt/log"
    umount "$STAGE/mnt"
    device=$(losetup --find --show "$STAGE/ram/disk.img")
    echo "$device" >"$STAGE/device"
    # Reads are delayed, writes are not. The guest has no udev that would make the node.
    echo "0 $(blockdev --getsz "$device") delay $device 0 $delay_ms $device 0 0" |
        DM_DISABLE_UDEV=1 dmsetup create scenario
    mount -o noatime /dev/mapper/scenario "$STAGE/mnt"
}
stall() { observe "${timed[@]}" grep -c 7 "$STAGE/mnt/log" >"$STAGE/count"; }
healthy() { stall; }
teardown() {
    umount "$STAGE/mnt"
    DM_DISABLE_UDEV=1 dmsetup remove scenario
    losetup --detach "$(cat "$STAGE/device")"
}
