#!/bin/bash
# dashboards behind nginx: an old worker after a reload
. "$STAGE"
chmod 755 "$RUN"
NP=$(port); EP=$(port); mkdir tmp
cat >orders.py <<'EOF'
"""order events for dashboards"""
import sys, threading, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
news, number = threading.Condition(), 0
def shop():
    global number
    while True:
        time.sleep(2.5)
        with news: number += 1; news.notify_all()
class Events(BaseHTTPRequestHandler):
    def log_message(self, *a): pass
    def do_GET(self):
        self.send_response(200); self.send_header("Content-Type", "text/event-stream"); self.end_headers()
        self.wfile.write(b": welcome\n\n"); self.wfile.flush()
        while self.path.startswith("/events"):
            with news: news.wait(); told = number
            self.wfile.write(b"event: order\ndata: %d\n\n" % told); self.wfile.flush()
threading.Thread(target=shop, daemon=True).start()
ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Events).serve_forever()
EOF
/usr/bin/python3 -B orders.py $EP & up $EP
cat >nginx.conf <<EOF
user www-data; daemon off; worker_processes 1; pid $RUN/nginx.pid; error_log $RUN/nginx-error.log notice;
events { worker_connections 128; }
http {
  access_log off;
  client_body_temp_path $RUN/tmp/b; proxy_temp_path $RUN/tmp/p; fastcgi_temp_path $RUN/tmp/f; uwsgi_temp_path $RUN/tmp/u; scgi_temp_path $RUN/tmp/s;
  server { listen 127.0.0.1:$NP; location / { proxy_pass http://127.0.0.1:$EP; proxy_buffering off; proxy_read_timeout 1h; } }
}
EOF
nginx -c "$RUN/nginx.conf" & NG=$!; up $NP
OLD=$(pgrep -P $NG | head -1)
for wall in 1 2; do curl -sN "http://127.0.0.1:$NP/events" >"wall$wall.log" & done
there wall1.log; there wall2.log
kill -HUP $NG; sleep 4; ready "$OLD"
