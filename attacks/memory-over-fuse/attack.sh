attack() {
    fuse_node
    local pids=() mode
    for mode in poll futex stack unmap; do
        as_user mkdir "$MINE/$mode"
        from_root "$PROGRAMS/fuse_memory" "$FUSE_NODE" "$MINE/$mode" "$mode" "$ATTACKER"
        pids+=("$hostile_pid")
    done
    for mode in 0 1 2 3; do
        start "look$mode" attach -p "${pids[mode]}" -d 1
    done
    innocent
    for mode in 0 1 2 3; do
        finish "look$mode"
    done
    start all attach -p "$(IFS=,; echo "${pids[*]}")"
    sleep 2
    end_with INT all
    start all_term attach -p "$(IFS=,; echo "${pids[*]}")"
    sleep 2
    end_with TERM all_term
}
