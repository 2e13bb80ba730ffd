#!/bin/bash
# outgoing proxy of the build hosts
. "$STAGE"
P=$(port); W=$(port); echo $P >port; mkdir -p www; echo pkg >www/pkg.tar
cat >tp.conf <<EOF
User nobody
Group nogroup
Port $P
Listen 127.0.0.1
Timeout 900
MaxClients 8
LogFile "$RUN/tp.log"
LogLevel Info
Allow 127.0.0.1
ConnectPort $W
EOF
: >tp.log; chown nobody tp.log
/usr/bin/python3 -m http.server -b 127.0.0.1 -d www "$W" >/dev/null 2>&1 & up "$W"
tinyproxy -d -c tp.conf >/dev/null 2>&1 & TP=$!
up "$P" || exit 1
cat >ci_agents.py <<'EOF'
# build agents: each keeps a tunnel to the artefact store for its next upload
import socket, sys, time
proxy, store = int(sys.argv[1]), int(sys.argv[2])
def tunnel():
    s = socket.create_connection(("127.0.0.1", proxy)); s.sendall(b"CONNECT 127.0.0.1:%d HTTP/1.1\r\nHost: store\r\n\r\n" % store); s.recv(400); return s
agents = [tunnel() for _ in range(8)]
while True: time.sleep(60)
EOF
(for i in 1 2; do curl -s -o /dev/null -w '%{http_code} %{time_total}\n' -x "http://127.0.0.1:$P" "http://127.0.0.1:$W/pkg.tar" >>before; done)
/usr/bin/python3 ci_agents.py "$P" "$W" & sleep 1.5
for i in 1 2 3; do (while :; do curl -s -m 60 -o /dev/null -w '%{http_code} %{time_total}\n' -x "http://127.0.0.1:$P" "http://127.0.0.1:$W/pkg.tar" >>after; sleep 1; done) & done
sleep 4; ready $TP
