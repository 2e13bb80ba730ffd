#!/bin/bash
. "$STAGE"
cd "$HERE" || exit 1
ruby ledger.rb &
there "$RUN/ledger.sock" || exit 1
ruby jobs.rb &
asked=$!
there "$RUN/jobs.stats" || exit 1
sleep 3
ready "$asked"
