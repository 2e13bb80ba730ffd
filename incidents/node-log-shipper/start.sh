#!/bin/bash
cd "$(dirname "$0")"
python3 -B collector.py &
while [ ! -s "$RUN/collector.port" ]; do sleep 0.1; done
export COLLECTOR_PORT=$(cat "$RUN/collector.port")
node shipper.js &
echo $! > "$RUN/pid"
sleep 4
echo READY
wait
