#!/bin/bash
. "$STAGE"
cd "$HERE" || exit 1
python3 -B desk.py >"$RUN/desk.log" 2>&1 &
asked=$!
there "$RUN/port" || exit 1
python3 -B people.py >"$RUN/people.log" 2>&1 &
sleep 3
ready "$asked"
