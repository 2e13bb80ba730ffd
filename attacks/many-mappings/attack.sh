attack() {
    hostile "$PROGRAMS/map_often" mappings
    start mappings attach -p "$hostile_pid" -d 1
    hostile "$PROGRAMS/map_often" files "$MINE"
    start files attach -p "$hostile_pid" -d 1
    innocent
    finish mappings
    finish files
}
