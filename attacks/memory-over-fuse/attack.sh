attack() {
    fuse_node
    local pids=() mode layer
    for layer in '' overlay; do
        for mode in poll futex stack; do
            as_user mkdir "$MINE/$mode$layer"
            hostile "$PROGRAMS/fuse_memory" "$FUSE_NODE" "$MINE/$mode$layer" "$mode" $layer
            pids+=("$hostile_pid")
        done
    done
    local number
    for number in 0 1 2 3 4 5; do
        start "look$number" attach -p "${pids[number]}" -d 1
    done
    innocent
    for number in 0 1 2 3 4 5; do
        finish "look$number"
    done
    start all attach -p "$(IFS=,; echo "${pids[*]}")"
    sleep 2
    end_with INT all
}
