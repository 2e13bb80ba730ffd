#!/bin/bash
. "$STAGE"
cd "$HERE" || exit 1
"$BUILT/ratecard" >"$RUN/ratecard.log" 2>&1 &
asked=$!
sleep 2.5
ready "$asked"
