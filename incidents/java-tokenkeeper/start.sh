#!/bin/bash
cd "$(dirname "$0")" || exit 1
: "${RUN:?}"
trap 'kill $(jobs -p) 2>/dev/null' EXIT
trap 'exit 0' TERM INT
python3 -B authserver.py >"$RUN/auth_server.out" 2>&1 &
for _ in $(seq 50); do [ -s "$RUN/auth.port" ] && break; sleep 0.1; done
AUTH_PORT=$(cat "$RUN/auth.port") /usr/lib/jvm/java-17-openjdk-amd64/bin/java -XX:-UsePerfData -XX:ActiveProcessorCount=2 -Xmx128m -cp "$BUILT" BookingGateway >"$RUN/app.log" 2>&1 &
echo $! >"$RUN/pid"
sleep 5
echo READY
wait
