# The twin's background process has its output elsewhere. (It ends after bash does, and is no part of the time.)
setup() { :; }
stall() { observe "${timed[@]}" bash "$scenario/start.sh" /dev/stdout; }
healthy() { observe "${timed[@]}" bash "$scenario/start.sh" /dev/null; }
