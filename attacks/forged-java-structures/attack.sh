attack() {
    local mode pids=()
    # The checkout may be where only root gets.
    cp "$attack_folder/forge.py" "$STAGE/forge.py"
    for mode in stride length cycle noise; do
        as_user mkdir "$MINE/$mode"
        hostile python3 "$STAGE/forge.py" "$mode" "$MINE/$mode"
        pids+=("$hostile_pid")
    done
    for mode in 0 1 2 3; do
        look "traced$mode" attach -p "${pids[mode]}" -d 1
        look "sampled$mode" attach --backend proc -p "${pids[mode]}" -d 1
    done
}
