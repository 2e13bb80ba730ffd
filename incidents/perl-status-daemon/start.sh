#!/bin/bash
cd "$(dirname "$0")"
(ulimit -n 32; exec perl statusd.pl) &
echo $! > "$RUN/pid"
while [ ! -S "$RUN/statusd.sock" ]; do sleep 0.1; done
perl probes.pl &
sleep 3
echo READY
wait
