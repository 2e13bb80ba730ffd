# Two threads, each with the lock that the other wants. The twin has nothing but a clock to wait for.
setup() {
    if [ "$1" = stall ]; then
        helper "$PROGRAMS/stuck" deadlock
        stuck=$helper_pid
        until [ "$(cut -d ' ' -f 1 /proc/"$stuck"/task/*/syscall | sort -u)" = 202 ]; do :; done
    else
        start_sleeper
    fi
}
stall() { look_at_stuck 1; }
healthy() { look_at_stuck 0; }
