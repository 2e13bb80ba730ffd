#!/bin/bash
. "$STAGE"
cd "$HERE" || exit 1
/usr/lib/jvm/java-17-openjdk-amd64/bin/java -XX:-UsePerfData -XX:ActiveProcessorCount=2 -Xmx128m -cp "$BUILT" Mailroom >"$RUN/app.log" 2>&1 &
asked=$!
there "$RUN/http.port" || exit 1
python3 -B branch_office.py >"$RUN/branch_office.out" 2>&1 &
sleep 2
ready "$asked"
