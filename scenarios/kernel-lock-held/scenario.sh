# The twin's other process makes a directory in another directory.
setup() {
    local busy=$STAGE/mnt
    if [ "$1" = healthy ]; then busy=$STAGE/mnt/other; fi
    mkdir "$STAGE/mnt"
    mkfifo "$STAGE/busy"
    helper "$PROGRAMS/dirfs" "$STAGE/mnt" "$STAGE/busy" "$STAGE/go"
    mkdir "$busy/first" &
    helpers+=($!)
    truth "\"holder_pid\": $!"
    # From here on the first one is inside the file system, and so has the directory's lock.
    read -r _ <"$STAGE/busy"
}
stall() { observe "${gated[@]}" "${timed[@]}" mkdir "$STAGE/mnt/second"; }
healthy() { stall; }
