# The twin writes each request in one piece.
setup() { helper python3 "$scenario/server.py"; }
stall() { observe "${timed[@]}" /usr/bin/python3 "$scenario/ask.py" pieces; }
healthy() { observe "${timed[@]}" /usr/bin/python3 "$scenario/ask.py" gathered; }
