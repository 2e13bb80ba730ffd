#!/bin/bash
. "$STAGE"
cd "$HERE" || exit 1
"$BUILT/bincounts" >"$RUN/bincounts.log" 2>&1 &
asked=$!
sleep 3
ready "$asked"
