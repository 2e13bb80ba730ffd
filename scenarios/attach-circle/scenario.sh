# Two processes, each of which reads what only the other would write. The twin has nothing but a clock to wait for.
setup() {
    if [ "$1" = stall ]; then
        helper "$PROGRAMS/stuck" circle
        stuck=$helper_pid
        until grep -q '^0 ' "/proc/$stuck/syscall"; do :; done
    else
        start_sleeper
    fi
}
stall() {
    look_at_stuck 1
}
healthy() {
    look_at_stuck 0
}
