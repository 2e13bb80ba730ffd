#!/bin/bash
. "$STAGE"
cd "$HERE" || exit 1
"$BUILT/beacon" >"$RUN/beacon.log" 2>&1 &
asked=$!
there "$RUN/beacon.port" || exit 1
python3 -B nodes.py >"$RUN/nodes.log" 2>&1 &
sleep 1
ready "$asked"
