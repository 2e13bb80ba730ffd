#!/bin/bash
. "$STAGE"
cd "$HERE" || exit 1
python3 -B indexer.py &
asked=$!
says '"modbus-parser"' "$RUN/progress.json" || exit 1
sleep 1
ready "$asked"
