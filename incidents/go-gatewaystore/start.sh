#!/bin/bash
. "$STAGE"
cd "$HERE" || exit 1
"$BUILT/gatewaystore" >"$RUN/gatewaystore.log" 2>&1 &
asked=$!
stands "$RUN/progress" 0.5 3
ready "$asked"
