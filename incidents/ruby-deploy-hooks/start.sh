#!/bin/bash
. "$STAGE"
cd "$HERE" || exit 1
ruby deployer.rb &
asked=$!
says '10-check-disk' "$RUN/deploy.log" || exit 1
sleep 1.5
ready "$asked"
