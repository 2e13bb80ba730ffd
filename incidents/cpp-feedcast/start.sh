#!/bin/bash
. "$STAGE"
cd "$HERE" || exit 1
"$BUILT/feedcast" >"$RUN/feedcast.log" 2>&1 &
asked=$!
there "$RUN/feed.port" || exit 1
python3 -B tvgraphics.py >"$RUN/tv.log" 2>&1 &
python3 -B wallboard.py >"$RUN/wall.log" 2>&1 &
stands "$RUN/frame" 0.3 4
ready "$asked"
