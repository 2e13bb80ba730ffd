attack() {
    fuse_node
    hostile "$PROGRAMS/overlay_fuse" "$FUSE_NODE" "$MINE" /bin/sleep
    start overlay attach -p "$hostile_pid" -d 1
    innocent
    finish overlay
    start overlay_int attach -p "$hostile_pid"
    sleep 2
    end_with INT overlay_int
    start overlay_term attach -p "$hostile_pid"
    sleep 2
    end_with TERM overlay_term
}
