# A request stands in the queue of a server that does not come to accept it. The twin has nothing but a clock to wait for.
setup() { start_stuck "$1" not-accepted syscall '^0 '; }
stall() { look_at_stuck 1; }
healthy() { look_at_stuck 0; }
