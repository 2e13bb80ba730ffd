# The twin syncs the file system that it has written to, and no other.
setup() {
    local file
    loop_disk
    throttle_kernel write_iops 40
    for file in {1..30}; do echo "not ours" >"$STAGE/mnt/$file"; done
    echo ours >"$STAGE/ours"
}
stall() { observe "${timed[@]}" sync; }
healthy() { observe "${timed[@]}" sync -f "$STAGE/ours"; }
