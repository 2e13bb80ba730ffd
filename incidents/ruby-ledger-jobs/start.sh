#!/bin/bash
cd "$(dirname "$0")"
ruby ledger.rb &
while [ ! -S "$RUN/ledger.sock" ]; do sleep 0.1; done
ruby jobs.rb &
echo $! > "$RUN/pid"
while [ ! -s "$RUN/jobs.stats" ]; do sleep 0.1; done
sleep 3
echo READY
wait
