# The twin's journal is on a disk without a limit.
setup() {
    loop_disk
    touch "$STAGE/mnt/ours"
    if [ "$1" = stall ]; then throttle_kernel write_iops 40; fi
    helper "$PROGRAMS/committer" "$STAGE/mnt/theirs"
}
stall() { observe "$PROGRAMS/renamer" "$STAGE/mnt/ours" 12; }
healthy() { stall; }
