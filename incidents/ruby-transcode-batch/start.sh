#!/bin/bash
. "$STAGE"
cd "$HERE" || exit 1
mkdir -p "$RUN/recordings"
echo '{"title": "intro", "seconds": 8}' > "$RUN/recordings/01.json"
echo '{"title": "council-meeting", "seconds": 5400}' > "$RUN/recordings/02.json"
ruby batch.rb >"$RUN/batch.log" 2>&1 &
asked=$!
says 'intro' "$RUN/batch.log" || exit 1
sleep 5
ready "$asked"
