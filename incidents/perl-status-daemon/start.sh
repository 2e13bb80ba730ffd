#!/bin/bash
. "$STAGE"
cd "$HERE" || exit 1
(ulimit -n 32; exec perl statusd.pl) &
asked=$!
there "$RUN/statusd.sock" || exit 1
perl probes.pl &
sleep 3
ready "$asked"
