# Stopped before anybody looked, so by whom is not to be seen. The twin has nothing but a clock to wait for.
setup() {
    if [ "$1" = stall ]; then
        helper "$PROGRAMS/stuck" stops
        stuck=$helper_pid
        until grep -q '^State:.T' "/proc/$stuck/status"; do :; done
    else
        start_sleeper
    fi
}
stall() {
    look_at_stuck 1
    # Stopped, it would not end when it is told to.
    kill -CONT "$stuck"
}
healthy() {
    look_at_stuck 0
}
