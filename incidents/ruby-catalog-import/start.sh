#!/bin/bash
. "$STAGE"
cd "$HERE" || exit 1
ruby importer.rb &
asked=$!
says 'written=730' "$RUN/progress" || exit 1
sleep 1
ready "$asked"
