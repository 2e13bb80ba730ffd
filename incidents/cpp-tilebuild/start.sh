#!/bin/bash
cd "$(dirname "$0")" || exit 1
: "${RUN:?}"
trap 'kill $(jobs -p) 2>/dev/null' EXIT
trap 'exit 0' TERM INT
"$BUILT/tilebuild" >"$RUN/tilebuild.log" 2>&1 &
echo $! >"$RUN/pid"
sleep 2.5
echo READY
wait
