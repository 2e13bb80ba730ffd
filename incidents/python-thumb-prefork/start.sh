#!/bin/bash
. "$STAGE"
cd "$HERE" || exit 1
python3 -B thumbd.py &
says 'worker 1 up' "$RUN/thumbd.log" || exit 1
sleep 1
ready "$(cat "$RUN/pid")"
