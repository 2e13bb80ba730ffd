# Stopped before anybody looked, so by whom is not to be seen. The twin has nothing but a clock to wait for.
setup() { start_stuck "$1" stops status '^State:.T'; }
stall() {
    look_at_stuck 1
    # Stopped, it would not end when it is told to.
    kill -CONT "$stuck"
}
healthy() { look_at_stuck 0; }
