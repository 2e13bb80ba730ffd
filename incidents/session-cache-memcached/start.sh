#!/bin/bash
# session cache with two kinds of clients
. "$STAGE"
P=$(port); echo $P >port
memcached -u memcache -l 127.0.0.1 -p "$P" -U 0 -c 24 -t 2 -m 32 -o no_maxconns_fast & MC=$!
up "$P" || exit 1
cat >stock_export.py <<'EOF'
# nightly stock export: reads item counters out of the cache, writes a csv
import csv, socket, sys, time
port = int(sys.argv[1])
class Cache:
    def __init__(self): self.s = socket.create_connection(("127.0.0.1", port)); self.f = self.s.makefile("rwb")
    def get(self, key):
        self.f.write(b"get %s\r\n" % key.encode()); self.f.flush()
        out = b""
        while True:
            line = self.f.readline()
            if line == b"END\r\n": return out
            if line.startswith(b"VALUE"): out = self.f.readline()
SHELVES = [f"stock:{w}:{n}" for w in ("north", "south", "harbour") for n in range(40)]
open_caches = {}
def count(key):
    c = open_caches.setdefault(key, Cache() if key not in open_caches else None)
    return c.get(key)
with open("stock.csv", "w") as f:
    w = csv.writer(f)
    for i, k in enumerate(SHELVES):
        w.writerow([k, count(k)]); f.flush()
        if i % 5 == 4: time.sleep(0.2)
time.sleep(3600)
EOF
cat >shop.py <<'EOF'
# shop front: one short cache connection per page view
import socket, sys, time, random, threading
port = int(sys.argv[1])
def load_session(sid):
    s = socket.create_connection(("127.0.0.1", port), timeout=60)
    f = s.makefile("rwb"); f.write(b"get sess:%d\r\n" % sid); f.flush()
    row = f.readline(); f.close(); s.close(); return row
def store_session(sid):
    s = socket.create_connection(("127.0.0.1", port), timeout=60)
    f = s.makefile("rwb"); f.write(b"set sess:%d 0 60 2\r\nok\r\n" % sid); f.flush(); f.readline(); f.close(); s.close()
def visitor():
    while True:
        try:
            sid = random.randrange(500); load_session(sid); store_session(sid)
        except OSError: pass
        time.sleep(random.uniform(0.2, 0.5))
for _ in range(4): threading.Thread(target=visitor, daemon=True).start()
time.sleep(3600)
EOF
/usr/bin/python3 shop.py "$P" & sleep 1; /usr/bin/python3 stock_export.py "$P" &
sleep 5; ready $MC
