attack() {
    hostile "$PROGRAMS/exec_itself"
    start execs attach -p "$hostile_pid" -d 1
    innocent
    finish execs
    hostile "$PROGRAMS/exec_itself" fork
    look forks attach -p "$hostile_pid" -d 1
}
