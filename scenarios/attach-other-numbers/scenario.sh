# Of a call of the 32-bit kind, number 3: not close, as it would be of 64 bits. The twin has nothing but a clock to wait for.
setup() { start_stuck "$1" other-numbers status '^State:.S'; }
stall() { look_at_stuck 1; }
healthy() { look_at_stuck 0; }
