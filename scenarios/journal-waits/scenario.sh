# The twin's journal is on a disk without a limit.
setup() {
    loop_disk
    # Neighbours in one block of the table of inodes: the transaction of one has the other, too.
    touch "$STAGE/mnt/first" "$STAGE/mnt/ours"
    if [ "$1" = stall ]; then throttle_kernel write_iops 40; fi
    helper "$PROGRAMS/committer" "$STAGE/mnt/theirs"
}
stall() { observe "$PROGRAMS/renamer" "$STAGE/mnt/ours" 30; }
healthy() { stall; }
