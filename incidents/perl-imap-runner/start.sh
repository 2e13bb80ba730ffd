#!/bin/bash
cd "$(dirname "$0")"
perl runner.pl &
first=$!
for i in $(seq 80); do grep -q 'user3' "$RUN/runner.log" 2>/dev/null && break; sleep 0.1; done
kill -9 $first
wait $first 2>/dev/null
perl runner.pl &
echo $! > "$RUN/pid"
for i in $(seq 80); do grep -q 'another run is busy' "$RUN/runner.log" 2>/dev/null && break; sleep 0.1; done
sleep 1
echo READY
wait
