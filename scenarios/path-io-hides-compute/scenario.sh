# Faster computing would gain nothing. In the twin the disk has no limit, and the computing shows.
setup() {
    loop_disk
    if [ "$1" = stall ]; then throttle write_iops 20; fi
}
stall() { observe "$PROGRAMS/overlap" 12 "$STAGE/mnt/out" io; }
healthy() { stall; }
