# Faster writing would gain nothing. The twin has nothing to write to but memory, and is as slow.
setup() {
    loop_disk
    if [ "$1" = stall ]; then throttle write_iops 100; fi
}
stall() { observe "$PROGRAMS/overlap" 60 "$STAGE/mnt/out" compute; }
healthy() { stall; }
