# The twin's shell calculates itself, for as long.
setup() { :; }
stall() { observe "${timed[@]}" bash "$scenario/count.sh" expr 400; }
healthy() { observe "${timed[@]}" bash "$scenario/count.sh" own 200000; }
