attack() {
    hostile "$PROGRAMS/jit_names" list 16
    start names attach -p "$hostile_pid" -d 1
    innocent
    finish names
    start names_int attach -p "$hostile_pid"
    sleep 2
    end_with INT names_int
    start names_term attach -p "$hostile_pid"
    sleep 2
    end_with TERM names_term
}
