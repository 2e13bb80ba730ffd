#!/bin/bash
. "$STAGE"
cd "$HERE" || exit 1
python3 -B broker.py >"$RUN/broker.log" 2>&1 &
there "$RUN/broker.port" || exit 1
/usr/bin/python3 -B labels.py >"$RUN/labels.log" 2>&1 &
asked=$!
sleep 4
ready "$asked"
