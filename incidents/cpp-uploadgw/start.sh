#!/bin/bash
cd "$(dirname "$0")" || exit 1
: "${RUN:?}"
trap 'kill $(jobs -p) 2>/dev/null' EXIT
trap 'exit 0' TERM INT
(ulimit -n 64; exec "$BUILT/uploadgw") >"$RUN/uploadgw.log" 2>&1 &
echo $! >"$RUN/pid"
for _ in $(seq 50); do [ -s "$RUN/upload.port" ] && break; sleep 0.1; done
python3 -B cameras.py >"$RUN/cameras.log" 2>&1 &
for _ in $(seq 120); do [ -e "$RUN/cameras.up" ] && break; sleep 0.1; done
echo READY
wait
