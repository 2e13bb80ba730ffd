# The twin's network takes no time.
setup() {
    if [ "$1" = stall ]; then tc qdisc add dev lo root netem delay 25ms; fi
    helper python3 "$scenario/echo.py"
}
stall() { observe "${timed[@]}" bash "$scenario/ask.sh"; }
healthy() { stall; }
