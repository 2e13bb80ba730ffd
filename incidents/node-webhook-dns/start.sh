#!/bin/bash
. "$STAGE"
cd "$HERE" || exit 1
node site-resolver.js &
there "$RUN/resolver.port" || exit 1
export RESOLVER_PORT=$(cat "$RUN/resolver.port")
node dispatcher.js &
asked=$!
sleep 2
ready "$asked"
