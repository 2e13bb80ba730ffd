# The twin has the same disk without the limit.
setup() {
    loop_disk
    mkfifo "$STAGE/locked"
    export PROGRAMS HOLDUP_TRUTH
    if [ "$1" = stall ]; then throttle write_iops 30; fi
}
stall() { observe make -s -j4 -f "$scenario/Makefile" "STAGE=$STAGE" "PROGRAMS=$PROGRAMS"; }
healthy() { stall; }
