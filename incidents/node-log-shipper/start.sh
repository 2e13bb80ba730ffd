#!/bin/bash
. "$STAGE"
cd "$HERE" || exit 1
python3 -B collector.py &
there "$RUN/collector.port" || exit 1
export COLLECTOR_PORT=$(cat "$RUN/collector.port")
node shipper.js &
asked=$!
sleep 4
ready "$asked"
