#!/bin/bash
cd "$(dirname "$0")"
ruby deployer.rb &
echo $! > "$RUN/pid"
for i in $(seq 100); do grep -q '10-check-disk' "$RUN/deploy.log" 2>/dev/null && break; sleep 0.1; done
sleep 1.5
echo READY
wait
