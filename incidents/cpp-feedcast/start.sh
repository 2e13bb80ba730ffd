#!/bin/bash
cd "$(dirname "$0")" || exit 1
: "${RUN:?}"
trap 'kill $(jobs -p) 2>/dev/null' EXIT
trap 'exit 0' TERM INT
"$BUILT/feedcast" >"$RUN/feedcast.log" 2>&1 &
echo $! >"$RUN/pid"
for _ in $(seq 50); do [ -s "$RUN/feed.port" ] && break; sleep 0.1; done
python3 -B tvgraphics.py >"$RUN/tv.log" 2>&1 &
python3 -B wallboard.py >"$RUN/wall.log" 2>&1 &
last=; same=0
for _ in $(seq 45); do
  sleep 0.3
  cur=$(cat "$RUN/frame" 2>/dev/null)
  if [ -n "$cur" ] && [ "$cur" = "$last" ]; then same=$((same+1)); else same=0; fi
  last=$cur
  [ $same -ge 4 ] && break
done
echo READY
wait
