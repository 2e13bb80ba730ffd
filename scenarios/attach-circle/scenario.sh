# Two processes, each of which reads what only the other would write. The twin has nothing but a clock to wait for.
setup() { start_stuck "$1" circle syscall '^0 '; }
stall() { look_at_stuck 1; }
healthy() { look_at_stuck 0; }
