#!/bin/bash
. "$STAGE"
cd "$HERE" || exit 1
/usr/lib/jvm/java-17-openjdk-amd64/bin/java -XX:-UsePerfData -XX:ActiveProcessorCount=2 -Xmx128m -cp "$BUILT" StoreServer >"$RUN/app.log" 2>&1 &
asked=$!
sleep 3.5
ready "$asked"
