# The twin's time is zero.
setup() { :; }
stall() { observe "${timed[@]}" perl -e 'select(undef, undef, undef, 1)'; }
healthy() { observe "${timed[@]}" perl -e 'select(undef, undef, undef, 0)'; }
