#!/bin/bash
# thumbnail queue in redis
. "$STAGE"
P=$(port); echo $P >port
redis-server --port "$P" --bind 127.0.0.1 --save '' --dir "$RUN" >r.log 2>&1 & RD=$!
up "$P" || exit 1
worker() { while :; do j=$(redis-cli -p "$P" blpop thumbs 0 | tail -1); echo "$1 $j" >>done; redis-cli -p "$P" incr finished >/dev/null; done; }
worker a & worker b & worker c &
(n=0; while :; do n=$((n+1)); redis-cli -p "$P" rpush thumbs "img$n" >/dev/null; sleep 1; done) &
sleep 3; ready $RD
