attack() {
    hostile "$PROGRAMS/long_cfi"
    start cfi attach -p "$hostile_pid" -d 1
    innocent
    finish cfi
    start cfi_int attach -p "$hostile_pid"
    sleep 2
    end_with INT cfi_int
    start cfi_term attach -p "$hostile_pid"
    sleep 2
    end_with TERM cfi_term
}
