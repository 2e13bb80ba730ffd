# The twin's server accepts at once.
setup() {
    manner=late
    if [ "$1" = healthy ]; then manner=at-once; fi
    own_helper python3 "$scenario/listen.py" "$manner"
    truth "\"holder_pid\": $helper_pid"
}
stall() { observe "${timed[@]}" /usr/bin/python3 "$scenario/connect.py" "$manner"; }
healthy() { stall; }
