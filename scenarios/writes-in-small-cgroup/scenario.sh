# The twin's cgroup has room for all that waits to be written.
setup() {
    loop_disk
    throttle_kernel write_bps 16777216
    if [ "$1" = stall ]; then limit_memory 8M; else limit_memory 64M; fi
    # The file system asks for memory of its own while all pages wait to be written. It gets it, and nobody is killed for it.
    if [ -w "$memory_cgroup/memory.oom_control" ]; then echo 1 >"$memory_cgroup/memory.oom_control"; fi
}
stall() { observe "${confined[@]}" "${timed[@]}" dd if=/dev/zero of="$STAGE/mnt/dump" bs=64k count=384 status=none; }
healthy() { stall; }
