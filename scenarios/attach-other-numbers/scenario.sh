# Of a call of the 32-bit kind, number 3: not close, as it would be of 64 bits. The twin has nothing but a clock to wait for.
setup() {
    if [ "$1" = stall ]; then
        helper "$PROGRAMS/stuck" other-numbers
        stuck=$helper_pid
        until grep -q '^State:.S' "/proc/$stuck/status"; do :; done
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
