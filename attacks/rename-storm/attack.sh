attack() {
    hostile "$PROGRAMS/rename_threads"
    start rename attach -p "$hostile_pid" -d 1
    innocent
    finish rename
    look host host -d 1
}
