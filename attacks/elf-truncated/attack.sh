attack() {
    hostile "$PROGRAMS/cut_file" "$MINE"
    local round
    for round in 1 2 3; do look "cut$round" attach -p "$hostile_pid" -d 1; done
}
