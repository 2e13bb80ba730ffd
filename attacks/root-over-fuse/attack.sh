attack() {
    fuse_node
    hostile "$PROGRAMS/overlay_fuse" "$FUSE_NODE" "$MINE" /bin/sleep root
    # A Java virtual machine that is too young is not asked.
    sleep 2
    start root attach -p "$hostile_pid" -d 3
    innocent
    finish root
    start root_term attach -p "$hostile_pid"
    sleep 2
    end_with TERM root_term
}
