#!/bin/bash
. "$STAGE"
cd "$HERE" || exit 1
"$BUILT/pricecache" >"$RUN/pricecache.log" 2>&1 &
asked=$!
there "$RUN/prices.sock" || exit 1
python3 -B tills.py >"$RUN/tills.log" 2>&1 &
sleep 3
ready "$asked"
