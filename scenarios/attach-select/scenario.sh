# A select on one pipe, whose writer sleeps. The twin has nothing but a clock to wait for.
setup() {
    if [ "$1" = stall ]; then
        helper "$PROGRAMS/stuck" selects
        stuck=$helper_pid
        until grep -q '^270 ' "/proc/$stuck/syscall"; do :; done
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
