#!/bin/bash
. "$STAGE"
cd "$HERE" || exit 1
python3 -B directory.py >"$RUN/directory.log" 2>&1 &
there "$RUN/directory.port" || exit 1
/usr/lib/jvm/java-17-openjdk-amd64/bin/java -XX:-UsePerfData -XX:ActiveProcessorCount=2 -Xmx96m -cp "$BUILT" Gate >"$RUN/gate.log" 2>&1 &
asked=$!
there "$RUN/gate.port" || exit 1
python3 -B badges.py >"$RUN/badges.log" 2>&1 &
sleep 3
ready "$asked"
