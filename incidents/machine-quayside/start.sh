#!/bin/bash
# bookings of a quay on a shared machine: an archive next to them is full, and has been for long
. "$STAGE"
. "$(dirname "$STAGE")/machine.sh"
mkdir -p spool archive
UNDO+=("umount $RUN/spool" "umount $RUN/archive")
for v in "spool 96M" "archive 8M"; do
  read -r name size <<<"$v"; truncate -s "$size" "$name.img"; mkfs.ext4 -q -m 0 "$name.img"; mount -o loop "$name.img" "$name"
done
dd if=/dev/zero of=archive/years.tar bs=64k 2>/dev/null; dd if=/dev/zero bs=1k 2>/dev/null >>archive/years.tar
inhabitants redis nginx pyhttp broker beans cache logger rotate tailer stats
B=$(port); A=$(port)
cat >broker.py <<'EOF'
# keeps messages in a spool; confirms each with a line, unless its volume is short
import os, selectors, socket, sys, time
spool, limit = sys.argv[2], 24 << 20
log = open("log/broker.log", "a", buffering=1)
store = open(spool + "/queue", "ab", buffering=0)
sel = selectors.DefaultSelector(); alarm = False; held = []
listen = socket.create_server(("127.0.0.1", int(sys.argv[1]))); sel.register(listen, selectors.EVENT_READ)
def say(text): log.write(time.strftime("%Y-%m-%d %H:%M:%S ") + text + "\n")
def free(): s = os.statvfs(spool); return s.f_bavail * s.f_frsize
while True:
    for key, _ in sel.select():
        if key.fileobj is listen:
            c, _ = listen.accept(); sel.register(c, selectors.EVENT_READ); continue
        data = key.fileobj.recv(4096)
        if not data: sel.unregister(key.fileobj); key.fileobj.close(); continue
        if not alarm and free() < limit:
            alarm = True
            say("[warning] disk resource limit alarm set: free disk space is insufficient, free bytes %d, limit %d" % (free(), limit))
            say("[warning] publishers will be blocked until this alarm clears")
        if alarm: key.fileobj.send(b"blocked\n"); sel.unregister(key.fileobj); held.append(key.fileobj)
        else: store.write(data); key.fileobj.send(b"ok\n")
EOF
cat >planner.py <<'EOF'
# plans routes; traces its search when it is told to
import signal, sys, time
trace = None
def on(*_):
    global trace
    trace = open(sys.argv[1] + "/search.trace", "wb", buffering=0)
    for _ in range(72): trace.write(b"\0" * (1 << 20))
signal.signal(signal.SIGUSR1, on)
while True: time.sleep(0.5); sum(i * i for i in range(2000))
EOF
cat >api.py <<'EOF'
# takes bookings and publishes them; a booking is done when the broker has confirmed it
import http.server, socket, sys
link = socket.create_connection(("127.0.0.1", int(sys.argv[2]))); lines = link.makefile("rb")
class Booking(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *a): pass
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"])); self.publish(b"booking\n")
        self.send_response(200); self.send_header("Content-Length", "0"); self.end_headers()
    def publish(self, body):
        link.sendall(body)
        while lines.readline() != b"ok\n": pass
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Booking).serve_forever()
EOF
cat >gauge.py <<'EOF'
# publishes water levels, and wants each confirmed
import socket, sys, time
link = socket.create_connection(("127.0.0.1", int(sys.argv[1]))); lines = link.makefile("rb")
while True: link.sendall(b"level\n"); lines.readline(); time.sleep(0.05)
EOF
/usr/bin/python3 broker.py "$B" spool & BR=$!; up "$B"
/usr/bin/python3 api.py "$A" "$B" & API=$!; up "$A"
for _ in 1 2 3; do /usr/bin/python3 gauge.py "$B" & done
/usr/bin/python3 planner.py spool & PL=$!
(while :; do cp /etc/services archive/ 2>/dev/null; sleep 2; done) &
for _ in 1 2; do (while :; do curl -s -m 200 -d box -o /dev/null "http://127.0.0.1:$A/"; sleep 0.3; done) & done
sleep 4; kill -USR1 "$PL"; sleep 9; ready "$API"
: "$BR"
