#!/bin/bash
# a relay for the clearing house: socat takes connections and passes them on
. "$STAGE"
P=$(port); B=$(port)
cat >clearing.py <<'E'
# the clearing house's gateway: takes connections and never reads them
import socket, sys
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
held = []
while True: held.append(listener.accept()[0])
E
/usr/bin/python3 clearing.py "$B" & up "$B"
socat "TCP-LISTEN:$P,bind=127.0.0.1,fork,reuseaddr" "TCP:127.0.0.1:$B" & RELAY=$!
up "$P" || exit 1
for _ in 1 2; do curl -s -m 300 "http://127.0.0.1:$P/settle" >/dev/null & done
sleep 2.5; ready $RELAY
