# The twin's cgroup has room for all that waits to be written.
setup() {
    loop_disk
    throttle_kernel write_bps 16777216
    if [ "$1" = stall ]; then limit_memory 8M; else limit_memory 64M; fi
}
stall() { observe "${confined[@]}" "${timed[@]}" dd if=/dev/zero of="$STAGE/mnt/dump" bs=64k count=384 status=none; }
healthy() { stall; }
