#!/bin/bash
# public API: haproxy takes the connections, nginx behind it limits requests per address and passes on to the application
. "$STAGE"
chmod 755 "$RUN"
HP=$(port); NP=$(port); AP=$(port); mkdir tmp
cat >stations.py <<'EOF'
"""departures API"""
import json, random, sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
def departures(station): return [{"station": station, "line": random.randint(1, 40), "in": random.randint(1, 30)} for _ in range(5)]
class Api(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        b = json.dumps(departures(self.path.rsplit("/", 1)[-1])).encode(); self.send_response(200); self.send_header("Content-Length", str(len(b))); self.end_headers(); self.wfile.write(b)
    def log_message(self, *a): pass
ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Api).serve_forever()
EOF
/usr/bin/python3 -B stations.py $AP & up $AP
cat >nginx.conf <<EOF
user www-data; daemon off; worker_processes 2; pid $RUN/nginx.pid; error_log $RUN/nginx-error.log notice;
events { worker_connections 256; }
http {
  log_format t '\$remote_addr \$http_x_forwarded_for "\$request" \$status \$request_time up=\$upstream_response_time';
  access_log $RUN/nginx-access.log t;
  client_body_temp_path $RUN/tmp/b; proxy_temp_path $RUN/tmp/p; fastcgi_temp_path $RUN/tmp/f; uwsgi_temp_path $RUN/tmp/u; scgi_temp_path $RUN/tmp/s;
  limit_req_zone \$binary_remote_addr zone=perclient:1m rate=2r/s;
  upstream stations { server 127.0.0.1:$AP; }
  server { listen 127.0.0.1:$NP; location / { limit_req zone=perclient burst=60; limit_req_log_level warn; proxy_pass http://stations; } }
}
EOF
nginx -c "$RUN/nginx.conf" & NG=$!; up $NP
cat >haproxy.cfg <<EOF
global
  maxconn 500
  user haproxy
defaults
  mode http
  option forwardfor
  timeout connect 5s
  timeout client 120s
  timeout server 120s
frontend public
  bind 127.0.0.1:$HP
  default_backend web
backend web
  server nginx1 127.0.0.1:$NP
EOF
haproxy -db -f haproxy.cfg >haproxy.log 2>&1 & up $HP
cat >board.py <<'EOF'
"""departure boards in the stations, each with its own address in the real world"""
import sys, threading, time, urllib.request
def board(n):
    while True:
        t = time.time(); urllib.request.urlopen(f"http://127.0.0.1:{sys.argv[1]}/departures/{n}", timeout=100).read()
        print(f"board {n} {time.time()-t:.2f} s", flush=True); time.sleep(1.5)
for n in range(14): threading.Thread(target=board, args=(n,), daemon=True).start()
threading.Event().wait()
EOF
/usr/bin/python3 -B board.py $HP >boards.log 2>&1 &
sleep 12; pgrep -P $NG | head -1 >worker; tail -n1 nginx-access.log >/dev/null
for w in $(pgrep -P $NG); do [ "$(ls -l /proc/$w/fd | grep -c socket)" -gt 6 ] && echo $w >worker; done
ready $(cat worker)
