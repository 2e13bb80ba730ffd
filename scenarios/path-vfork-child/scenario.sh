# The twin's daemon answers at once. What the first read of a page costs is in the start; /bin/true is small, so that
# little is read after it.
setup() {
    local delay_ms=700
    if [ "$1" = healthy ]; then delay_ms=0; fi
    mkdir "$STAGE/mnt"
    helper "$PROGRAMS/slowfs" "$STAGE/mnt" /bin/true "$delay_ms"
}
stall() { observe "$PROGRAMS/spawn" "$STAGE/mnt/data"; }
healthy() { stall; }
