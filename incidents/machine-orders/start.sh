#!/bin/bash
# orders: nginx, app and postgres on one machine
. "$STAGE"
. "$(dirname "$STAGE")/machine.sh"
inhabitants redis pyhttp broker cache logger tailer stats
PGB=$(ls -d /usr/lib/postgresql/*/bin | tail -1); DP=$(port); A=$(port); W=$(port)
mkdir pg; chown postgres pg; chmod 700 pg
as() { setpriv --reuid=postgres --regid=postgres --clear-groups "$@"; }
as "$PGB/initdb" -D pg -A trust -N >log/initdb 2>&1
as "$PGB/postgres" -D pg -p "$DP" -k "$RUN/pg" -c listen_addresses=127.0.0.1 -c shared_buffers=16MB -c fsync=off >log/pg 2>&1 & up "$DP" || exit 1
sql() { psql -q -X -h 127.0.0.1 -p "$DP" -U postgres -d postgres "$@"; }
for i in 1 2 3 4 5 6 7 8; do sql -c 'create table stock(sku text primary key, n int)' 2>/dev/null && break; sleep 0.4; done
sql -c "insert into stock select 'sku'||g, 100 from generate_series(1,20) g"
cat >orders.py <<'EOF'
import http.server, os, subprocess, sys
DSN = ["psql", "-qXAt", "-h", "127.0.0.1", "-p", sys.argv[2], "-U", "postgres", "-d", "postgres"]
ENV = dict(os.environ, PGAPPNAME="orders")
def take(sku): return subprocess.run(DSN + ["-c", f"update stock set n=n-1 where sku='{sku}' returning n"], env=ENV, stdout=subprocess.PIPE).stdout
def show(sku): return subprocess.run(DSN + ["-c", f"select n from stock where sku='{sku}'"], env=ENV, stdout=subprocess.PIPE).stdout
class O(http.server.BaseHTTPRequestHandler):
    def log_message(self, *a): pass
    def do_GET(self):
        _, verb, sku = self.path.split("/"); b = (take if verb == "order" else show)(sku)
        self.send_response(200); self.end_headers(); self.wfile.write(b)
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), O).serve_forever()
EOF
/usr/bin/python3 orders.py "$A" "$DP" & up "$A"
printf 'user www-data;\ndaemon off;\nworker_processes 1;\npid %s/nginx.pid;\nerror_log %s/log/ng.err;\nevents {worker_connections 64;}\nhttp { access_log off; client_body_temp_path %s/home/b; proxy_temp_path %s/home/p; fastcgi_temp_path %s/home/f; uwsgi_temp_path %s/home/u; scgi_temp_path %s/home/s; server { listen 127.0.0.1:%s; location / { proxy_pass http://127.0.0.1:%s; proxy_read_timeout 300; } } }\n' "$RUN" "$RUN" "$RUN" "$RUN" "$RUN" "$RUN" "$RUN" "$W" "$A" >shop.conf
nginx -c "$RUN/shop.conf" & NG=$!; up "$W"
(while :; do curl -s -m 200 -o /dev/null "http://127.0.0.1:$W/show/sku3"; sleep 1.2; done) &
for i in 1 2 3; do (while :; do curl -s -m 200 -o /dev/null "http://127.0.0.1:$W/order/sku7"; sleep 1; done) & done
sleep 1.5
( { echo "begin; select n from stock where sku='sku7' for update; update stock set n=96 where sku='sku7';"; sleep 600; } | PGAPPNAME=stocktake psql -q -X -h 127.0.0.1 -p "$DP" -U postgres -d postgres >log/stocktake 2>&1 ) &
echo "$DP" >dbport; sleep 4; ready $NG
