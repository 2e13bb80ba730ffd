#!/bin/bash
# a cache with a limit of clients, which an export keeps to itself
. "$STAGE"
P=$(port)
redis-server --port "$P" --save '' --maxclients 6 --dir "$RUN" >r.log 2>&1 & CACHE=$!
up "$P" || exit 1
cat >export.py <<'E'
# the nightly export: opens a connection for each table and closes none
import socket, sys, time
tables = [socket.create_connection(("127.0.0.1", int(sys.argv[1]))) for _ in range(6)]
time.sleep(600)
E
/usr/bin/python3 export.py "$P" & sleep 0.6
for _ in 1 2; do (while :; do redis-cli -p "$P" get price >>shop.log 2>&1; sleep 0.3; done) & done
sleep 1.5; ready $CACHE
