#!/bin/bash
cd "$(dirname "$0")"
ruby importer.rb &
echo $! > "$RUN/pid"
for i in $(seq 80); do grep -q 'written=730' "$RUN/progress" 2>/dev/null && break; sleep 0.1; done
sleep 1
echo READY
wait
