#!/bin/bash
. "$STAGE"
cd "$HERE" || exit 1
perl runner.pl &
first=$!
says 'user3' "$RUN/runner.log" || exit 1
kill -9 $first
wait $first 2>/dev/null
perl runner.pl &
asked=$!
says 'another run is busy' "$RUN/runner.log" || exit 1
sleep 1
ready "$asked"
