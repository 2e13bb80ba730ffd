#!/bin/bash
# haproxy with server maxconn
. "$STAGE"
B=$(port); P=$(port); echo $P >port
cat >app1.py <<'EOF'
import http.server, sys, time
class H(http.server.BaseHTTPRequestHandler):
    def log_message(self, *a): pass
    def do_GET(self):
        self.send_response(200); self.end_headers()
        if self.path.startswith("/export"): self.export()
        else: self.wfile.write(b"order list\n")
    def export(self):
        for row in range(100000): self.wfile.write(b"%d;paid;12.50\n" % row); self.wfile.flush(); time.sleep(0.4)
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), H).serve_forever()
EOF
cat >haproxy.cfg <<EOF
global
  maxconn 200
  stats socket $RUN/stats.sock mode 600
defaults
  mode http
  timeout connect 5s
  timeout client 300s
  timeout server 300s
  timeout queue 120s
frontend shop
  bind 127.0.0.1:$P
  default_backend app
backend app
  option http-server-close
  server app1 127.0.0.1:$B maxconn 2
EOF
/usr/bin/python3 app1.py "$B" & up "$B"
haproxy -db -f haproxy.cfg >haproxy.log 2>&1 & HA=$!
up "$P" || exit 1
nightly_export() { curl -s -m 900 -o "export.$1.csv" "http://127.0.0.1:$P/export?year=$1"; }
nightly_export 2022 & nightly_export 2023 & sleep 1
for i in 1 2 3 4; do (while :; do curl -s -m 100 -o /dev/null "http://127.0.0.1:$P/orders?u=$i"; sleep 0.5; done) & done
sleep 3; ready $HA
