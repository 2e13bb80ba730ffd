#!/bin/bash
cd "$(dirname "$0")" || exit 1
: "${RUN:?}"
trap 'kill $(jobs -p) 2>/dev/null' EXIT
trap 'exit 0' TERM INT

/usr/lib/jvm/java-17-openjdk-amd64/bin/java -XX:-UsePerfData -XX:ActiveProcessorCount=2 -Xmx128m -cp "$BUILT" Mailroom >"$RUN/app.log" 2>&1 &
echo $! >"$RUN/pid"
for _ in $(seq 80); do [ -s "$RUN/http.port" ] && break; sleep 0.1; done
python3 -B branch_office.py >"$RUN/branch_office.out" 2>&1 &
sleep 2
echo READY
wait
