#!/bin/bash
. "$STAGE"
cd "$HERE" || exit 1
(ulimit -n 64; exec "$BUILT/uploadgw") >"$RUN/uploadgw.log" 2>&1 &
asked=$!
there "$RUN/upload.port" || exit 1
python3 -B cameras.py >"$RUN/cameras.log" 2>&1 &
there "$RUN/cameras.up" || exit 1
ready "$asked"
