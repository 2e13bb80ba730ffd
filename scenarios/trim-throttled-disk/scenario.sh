# The twin has the same disk without the limit.
setup() {
    loop_disk
    if [ "$1" = stall ]; then throttle write_iops 20; fi
}
stall() { observe "${timed[@]}" fstrim "$STAGE/mnt"; }
healthy() { stall; }
