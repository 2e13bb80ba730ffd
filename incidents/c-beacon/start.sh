#!/bin/bash
cd "$(dirname "$0")" || exit 1
: "${RUN:?}"
trap 'kill $(jobs -p) 2>/dev/null' EXIT
trap 'exit 0' TERM INT
"$BUILT/beacon" >"$RUN/beacon.log" 2>&1 &
echo $! >"$RUN/pid"
for _ in $(seq 50); do [ -s "$RUN/beacon.port" ] && break; sleep 0.1; done
python3 -B nodes.py >"$RUN/nodes.log" 2>&1 &
sleep 1
echo READY
wait
