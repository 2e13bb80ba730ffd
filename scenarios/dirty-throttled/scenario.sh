# The twin's device, as slow, may have as many dirty pages as any.
setup() {
    local lower
    slow_disk
    if [ "$1" = stall ]; then
        lower=$disk
        disk=$(mountpoint -d "$STAGE/mnt")
        dirty_limit 262144
        disk=$lower
    fi
    slow_down 40
}
stall() { observe "${timed[@]}" dd if=/dev/zero of="$STAGE/mnt/dump" bs=64k count=100 status=none; }
healthy() { stall; }
