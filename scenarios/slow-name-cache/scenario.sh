# The twin's cache hangs up at once.
setup() {
    local delay=0.6
    if [ "$1" = healthy ]; then delay=0; fi
    mount -t tmpfs none /run
    mkdir /run/nscd
    helper python3 "$scenario/cache.py" "$delay"
    truth "\"holder_pid\": $helper_pid"
}
stall() { observe "${timed[@]}" getent passwd root; }
healthy() { stall; }
