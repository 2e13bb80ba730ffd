# A select on one pipe, whose writer sleeps. The twin has nothing but a clock to wait for.
setup() { start_stuck "$1" selects syscall '^270 '; }
stall() { look_at_stuck 1; }
healthy() { look_at_stuck 0; }
