# The twin's file system answers at once.
setup() {
    local delay_ms=1000
    if [ "$1" = healthy ]; then delay_ms=0; fi
    mkdir "$STAGE/mnt"
    mkfifo "$STAGE/busy"
    helper "$PROGRAMS/writefs" "$STAGE/mnt" "$STAGE/busy" "$delay_ms"
}
stall() { observe "$PROGRAMS/remap" "$STAGE/mnt/data" "$STAGE/busy"; }
healthy() { stall; }
