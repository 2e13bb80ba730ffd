#!/bin/bash
cd "$(dirname "$0")" || exit 1
: "${RUN:?}"
trap 'kill $(jobs -p) 2>/dev/null' EXIT
trap 'exit 0' TERM INT
"$BUILT/gatewaystore" >"$RUN/gatewaystore.log" 2>&1 &
echo $! >"$RUN/pid"
last=; same=0
for _ in $(seq 28); do
  sleep 0.5
  cur=$(cat "$RUN/progress" 2>/dev/null)
  if [ -n "$cur" ] && [ "$cur" = "$last" ]; then same=$((same+1)); else same=0; fi
  last=$cur
  [ $same -ge 3 ] && break
done
echo READY
wait
