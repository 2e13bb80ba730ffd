# The twin has the same disk without the limit.
setup() {
    loop_disk
    if [ "$1" = stall ]; then throttle write_iops 30; fi
}
stall() { observe "$PROGRAMS/ring" "$STAGE/mnt/out"; }
healthy() { stall; }
