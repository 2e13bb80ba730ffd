# The twin maps the same file, as cold, without the limit.
setup() {
    loop_disk
    head -c 5M /dev/urandom >"$STAGE/mnt/table"
    make_cold
    if [ "$1" = stall ]; then throttle read_bps 4194304; fi
}
stall() { observe "${timed[@]}" "$PROGRAMS/mapped" "$STAGE/mnt/table"; }
healthy() { stall; }
