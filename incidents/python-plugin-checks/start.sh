#!/bin/bash
cd "$(dirname "$0")"
python3 -B indexer.py &
echo $! > "$RUN/pid"
for i in $(seq 100); do grep -q '"modbus-parser"' "$RUN/progress.json" 2>/dev/null && break; sleep 0.1; done
sleep 1
echo READY
wait
