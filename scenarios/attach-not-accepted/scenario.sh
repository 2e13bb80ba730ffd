# A request stands in the queue of a server that does not come to accept it. The twin has nothing but a clock to wait for.
setup() {
    if [ "$1" = stall ]; then
        helper "$PROGRAMS/stuck" not-accepted
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
