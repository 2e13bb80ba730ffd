# The twin's recipe does not sleep.
setup() {
    local seconds=1
    if [ "$1" = healthy ]; then seconds=0; fi
    printf 'all: licence notice\nlicence:\n\tsleep %s; date > $@\nnotice:\n\tdate > $@\n' "$seconds" \
        >"$STAGE/Makefile"
}
stall() { observe "${timed[@]}" make -s -j2 -C "$STAGE"; }
healthy() { stall; }
