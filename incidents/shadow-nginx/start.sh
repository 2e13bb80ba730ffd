#!/bin/bash
# nginx that mirrors traffic to staging
. "$STAGE"
P=$(port); echo $P >port; mkdir -p log; A=$(port)
cat >staging.py <<'EOF'
# staging copy of the api; its migration holds every request
import http.server, threading
migrated = threading.Event()
class H(http.server.BaseHTTPRequestHandler):
    def log_message(self, *a): pass
    def do_GET(self): migrated.wait(); self.send_response(200); self.end_headers()
    do_POST = do_GET
http.server.ThreadingHTTPServer(("127.0.0.1", 22930), H).serve_forever()
EOF
cat >api.py <<'EOF'
import http.server, sys
class H(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *a): pass
    def do_GET(self):
        b = b'{"price": 12}'; self.send_response(200); self.send_header("Content-Length", str(len(b))); self.end_headers(); self.wfile.write(b)
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), H).serve_forever()
EOF
cat >nginx.conf <<EOF
user www-data;
worker_processes 1;
daemon off;
pid $RUN/nginx.pid;
error_log $RUN/log/error.log;
events { worker_connections 256; }
http {
  log_format t '\$request \$status \$request_time \$upstream_response_time';
  access_log $RUN/log/access.log t;
  client_body_temp_path $RUN/log/b; proxy_temp_path $RUN/log/p; fastcgi_temp_path $RUN/log/f; uwsgi_temp_path $RUN/log/u; scgi_temp_path $RUN/log/s;
  keepalive_timeout 300s;
  upstream api { server 127.0.0.1:$A; keepalive 4; }
  server {
    listen 127.0.0.1:$P;
    location / { mirror /shadow; proxy_pass http://api; proxy_http_version 1.1; proxy_set_header Connection ""; }
    location = /shadow { internal; proxy_pass http://127.0.0.1:22930\$request_uri; proxy_read_timeout 180s; }
  }
}
EOF
/usr/bin/python3 staging.py & /usr/bin/python3 api.py "$A" & up 22930; up "$A"
nginx -c "$RUN/nginx.conf" & NG=$!
up "$P" || exit 1
cat >checkout.py <<'EOF'
import http.client, sys, threading, time
def till(n):
    c = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]), timeout=400); i = 0
    while True:
        t = time.time(); i += 1; c.request("GET", f"/price?till={n}&i={i}"); c.getresponse().read(); print(n, i, round(time.time() - t, 2), flush=True); time.sleep(0.3)
for n in range(4): threading.Thread(target=till, args=(n,), daemon=True).start()
time.sleep(9999)
EOF
/usr/bin/python3 checkout.py "$P" >checkout.log & sleep 4; ready "$(pgrep -P $NG | head -1)"
