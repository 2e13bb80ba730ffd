# The twin copies a thousandth of it.
setup() {
    precedence
    export TRUTH_OF=cpu
}
stall() { copy 60000; }
healthy() { copy 60; }
copy() { observe "${timed[@]}" dd if=/dev/zero of=/dev/null bs=1M count="$1" status=none; }
