#!/bin/bash
cd "$(dirname "$0")" || exit 1
: "${RUN:?}"
trap 'kill $(jobs -p) 2>/dev/null' EXIT
trap 'exit 0' TERM INT
"$BUILT/pricecache" >"$RUN/pricecache.log" 2>&1 &
echo $! >"$RUN/pid"
for _ in $(seq 50); do [ -S "$RUN/prices.sock" ] && break; sleep 0.1; done
python3 -B tills.py >"$RUN/tills.log" 2>&1 &
sleep 3
echo READY
wait
