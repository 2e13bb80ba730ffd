#!/bin/bash
. "$STAGE"
cd "$HERE" || exit 1
python3 -B authserver.py >"$RUN/auth_server.out" 2>&1 &
there "$RUN/auth.port" || exit 1
AUTH_PORT=$(cat "$RUN/auth.port") /usr/lib/jvm/java-17-openjdk-amd64/bin/java -XX:-UsePerfData -XX:ActiveProcessorCount=2 -Xmx128m -cp "$BUILT" BookingGateway >"$RUN/app.log" 2>&1 &
asked=$!
sleep 5
ready "$asked"
