#!/bin/bash
. "$STAGE"
cd "$HERE" || exit 1
"$BUILT/tilebuild" >"$RUN/tilebuild.log" 2>&1 &
asked=$!
sleep 2.5
ready "$asked"
