# In the twin no clock was left on.
setup() {
    precedence 100
    if [ "$1" = stall ]; then
        helper "$PROGRAMS/storm"
    fi
}
stall() { observe taskset -c 0 "$PROGRAMS/count" 1000; }
healthy() { stall; }
