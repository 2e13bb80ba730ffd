# The twin has the same disk without the limit.
setup() {
    loop_disk
    need_stable_pages
    head -c 4096 /dev/zero >"$STAGE/mnt/counters"
    sync -f "$STAGE/mnt/counters"
    if [ "$1" = stall ]; then throttle write_iops 20; fi
}
stall() { observe "$PROGRAMS/counters" "$STAGE/mnt/counters" 20; }
healthy() { stall; }
