# The twin writes to a disk like it without the limit.
setup() {
    local device=/dev/vdb
    if [ "$1" = healthy ]; then device=/dev/vdc; fi
    mkdir "$STAGE/mnt"
    mkfs.ext4 -q -F -E nodiscard "$device"
    mount -o noatime "$device" "$STAGE/mnt"
}
stall() { observe "${timed[@]}" dd if=/dev/zero of="$STAGE/mnt/journal" bs=4k count=15 oflag=dsync status=none; }
healthy() { stall; }
