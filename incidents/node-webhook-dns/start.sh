#!/bin/bash
cd "$(dirname "$0")"
node site-resolver.js &
while [ ! -s "$RUN/resolver.port" ]; do sleep 0.1; done
export RESOLVER_PORT=$(cat "$RUN/resolver.port")
node dispatcher.js &
echo $! > "$RUN/pid"
sleep 2
echo READY
wait
