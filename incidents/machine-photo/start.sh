#!/bin/bash
# small photo site on a shared machine
. "$STAGE"
. "$(dirname "$STAGE")/machine.sh"
CG=/sys/fs/cgroup/freezer/photo-thumbs.$$; mkdir -p "$CG"; UNDO+=("echo THAWED >$CG/freezer.state; kill -KILL \$(cat $CG/cgroup.procs); rmdir $CG")
trap 'echo THAWED >$CG/freezer.state; finish' EXIT
inhabitants redis nginx pyhttp broker beans cache logger rotate tailer stats
T=$(port); U=$(port)
cat >thumbd.py <<'EOF'
# makes thumbnails: one line in, one line out
import hashlib, socketserver, sys
class Thumb(socketserver.StreamRequestHandler):
    def handle(self):
        for line in self.rfile: self.wfile.write(self.scale(line) + b"\n")
    def scale(self, name): return hashlib.md5(name * 200).hexdigest().encode()
class Server(socketserver.ThreadingTCPServer): daemon_threads = True; allow_reuse_address = True
Server(("127.0.0.1", int(sys.argv[1])), Thumb).serve_forever()
EOF
cat >uploads.py <<'EOF'
import http.server, socket, sys
class Upload(http.server.BaseHTTPRequestHandler):
    def log_message(self, *a): pass
    def do_POST(self):
        name = self.path.strip("/"); self.rfile.read(int(self.headers.get("Content-Length", 0)))
        t = self.thumbnail(name); self.send_response(200); self.end_headers(); self.wfile.write(t)
    def thumbnail(self, name):
        with socket.create_connection(("127.0.0.1", int(sys.argv[2]))) as s: s.sendall(name.encode() + b"\n"); return s.makefile("rb").readline()
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Upload).serve_forever()
EOF
cat >snapshot.sh <<'EOF'
#!/bin/bash
# consistent copy of the thumbnail store: freeze, copy, thaw
echo FROZEN >"$1/freezer.state"
mkfifo copy.done; read -r _ <copy.done
echo THAWED >"$1/freezer.state"
EOF
/usr/bin/python3 thumbd.py "$T" & TH=$!; up "$T"; echo $TH >"$CG/cgroup.procs"
/usr/bin/python3 uploads.py "$U" "$T" & UP=$!; up "$U"
for v in 1 2 3; do (n=0; while :; do n=$((n+1)); curl -s -m 200 -d pixels -o /dev/null "http://127.0.0.1:$U/v$v-$n.jpg"; sleep 0.6; done) & done
sleep 1.5; bash snapshot.sh "$CG" & sleep 2.5; echo "$CG" >cg; ready $UP
