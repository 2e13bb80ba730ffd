#!/bin/bash
. "$STAGE"
cd "$HERE" || exit 1
"$BUILT/jobrouter" >"$RUN/jobrouter.log" 2>&1 &
asked=$!
stands "$RUN/routed" 0.5 4
ready "$asked"
