#!/bin/bash
cd "$(dirname "$0")" || exit 1
: "${RUN:?}"
trap 'kill $(jobs -p) 2>/dev/null' EXIT
trap 'exit 0' TERM INT
python3 -B ledger_db.py >"$RUN/ledger_db.log" 2>&1 &
for _ in $(seq 50); do [ -S "$RUN/ledger.sock" ] && break; sleep 0.1; done
"$BUILT/invoicereport" >"$RUN/invoicereport.log" 2>&1 &
echo $! >"$RUN/pid"
last=x; same=0
for _ in $(seq 26); do
  sleep 0.5
  cur=$(cat "$RUN/reports" 2>/dev/null)
  if [ -n "$cur" ] && [ "$cur" = "$last" ]; then same=$((same+1)); else same=0; fi
  last=$cur
  [ $same -ge 4 ] && break
done
echo READY
wait
