# The twin takes them from /dev/zero.
setup() {
    precedence
    export TRUTH_OF=cpu
}
stall() { copy_from /dev/urandom; }
healthy() { copy_from /dev/zero; }
copy_from() { observe "${timed[@]}" dd if="$1" of=/dev/null bs=4k count=100000 status=none; }
