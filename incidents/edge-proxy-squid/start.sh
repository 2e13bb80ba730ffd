#!/bin/bash
# office forward proxy with category filter
. "$STAGE"
W=$(port); P=$(port)
mkdir -p log www; echo '<h1>intranet</h1>' >www/index.html; echo ok >www/news.html
chown -R proxy:proxy log; chown proxy:proxy "$RUN"
cat >catd.py <<'EOF'
# category service: answers "url -> category", one line each
import socket, threading, time
CATS = {"news": "press", "index": "internal"}
STALL_AFTER = 4
served = 0
lock = threading.Lock()
backlog = []
def talk(c):
    global served
    f = c.makefile("rw")
    for line in f:
        with lock:
            served += 1
            if served > STALL_AFTER:
                backlog.append((c, line)); rebuild.wait()
        word = next((v for k, v in CATS.items() if k in line), "unknown")
        f.write(word + "\n"); f.flush()
rebuild = threading.Event()
s = socket.create_server(("127.0.0.1", 22741))
while True:
    c, _ = s.accept()
    threading.Thread(target=talk, args=(c,), daemon=True).start()
EOF
cat >urlsort.py <<'EOF'
#!/usr/bin/python3
# squid url_rewrite helper: denies the categories listed below
import socket, sys
DENY = {"games", "adult"}
class Categories:
    def __init__(self, addr):
        self.sock = socket.create_connection(addr); self.f = self.sock.makefile("rw"); self.cache = {}
    def lookup(self, url):
        if url not in self.cache or len(self.cache) > 500:
            self.f.write(url + "\n"); self.f.flush()
            self.cache = {url: self.f.readline().strip()}
        return self.cache[url]
def main():
    cats = Categories(("127.0.0.1", 22741))
    for line in sys.stdin:
        url = line.split()[0]
        if cats.lookup(url) in DENY: print('OK status=302 url="http://127.0.0.1/denied"', flush=True)
        else: print("ERR", flush=True)
main()
EOF
chmod 755 urlsort.py
cat >squid.conf <<EOF
http_port 127.0.0.1:$P
acl office src 127.0.0.0/8
http_access allow office
http_access deny all
cache deny all
pid_filename none
cache_log $RUN/log/cache.log
access_log stdio:$RUN/log/access.log
coredump_dir $RUN/log
shutdown_lifetime 1 seconds
pinger_enable off
url_rewrite_program $RUN/urlsort.py
url_rewrite_children 2 startup=2 idle=1 concurrency=0 queue-size=80
url_rewrite_access allow all
EOF
/usr/bin/python3 catd.py & /usr/bin/python3 -m http.server -b 127.0.0.1 -d www "$W" >/dev/null 2>&1 &
up 22741; up "$W"
squid -N -f squid.conf >/dev/null 2>&1 & SQ=$!
up "$P" || exit 1
echo "$P" >proxyport
browse() { while :; do curl -s -m 45 -o /dev/null -x "http://127.0.0.1:$P" "http://127.0.0.1:$W/$1?d=$RANDOM"; sleep 0.4; done; }
for u in index.html news.html index.html news.html index.html; do browse $u & done
sleep 6; ready $SQ
