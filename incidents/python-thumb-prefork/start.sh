#!/bin/bash
cd "$(dirname "$0")"
python3 -B thumbd.py &
for i in $(seq 100); do grep -q 'worker 1 up' "$RUN/thumbd.log" 2>/dev/null && break; sleep 0.1; done
sleep 1
echo READY
wait
