#!/bin/bash
. "$STAGE"
cd "$HERE" || exit 1
python3 -B supplier.py &
there "$RUN/shop" || exit 1
python3 -B crawl.py "$(cat "$RUN/shop")" >"$RUN/crawl.log" 2>&1 &
asked=$!
says 'skipped=3' "$RUN/crawl.log" || exit 1
sleep 1
ready "$asked"
