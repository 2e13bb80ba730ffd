#!/bin/bash
# machine with an archive mount
. "$STAGE"
. "$(dirname "$STAGE")/machine.sh"
inhabitants redis nginx pyhttp broker beans logger rotate stats dns
mkdir -p vault; UNDO+=("fusermount3 -uz $RUN/vault || umount -l $RUN/vault")
cat >store.py <<'EOF'
# object store gateway: accepts, answers the first few look-ups, then loses its upstream
import socket, threading
budget = 6
hold = threading.Event()
def serve(c):
    global budget
    for line in c.makefile("rb"):
        budget -= 1
        if budget < 0: hold.wait()
        c.sendall(b"4096\n")
s = socket.create_server(("127.0.0.1", 22970))
while True: threading.Thread(target=serve, args=(s.accept()[0],), daemon=True).start()
EOF
cat >vaultfs.py <<'EOF'
# read-only view of the archive: sizes come from the store
import errno, os, socket, stat, sys, time
from fusepy import FUSE, FuseOSError, Operations
YEARS = ["2019", "2020", "2021", "2022"]
class Vault(Operations):
    def __init__(self): self.s = socket.create_connection(("127.0.0.1", 22970)); self.f = self.s.makefile("rwb")
    def size(self, name): self.f.write(name.encode() + b"\n"); self.f.flush(); return int(self.f.readline())
    def getattr(self, path, fh=None):
        now = time.time(); t = dict(st_atime=now, st_mtime=now, st_ctime=now, st_uid=0, st_gid=0)
        if path == "/": return dict(t, st_mode=stat.S_IFDIR | 0o755, st_nlink=2)
        if path[1:] not in YEARS: raise FuseOSError(errno.ENOENT)
        return dict(t, st_mode=stat.S_IFREG | 0o444, st_nlink=1, st_size=self.size(path))
    def readdir(self, path, fh): return [".", ".."] + YEARS
FUSE(Vault(), sys.argv[1], foreground=True, nothreads=True, allow_other=True)
EOF
/usr/bin/python3 store.py & up 22970; /usr/bin/python3 vaultfs.py "$RUN/vault" >log/vaultfs 2>&1 & VF=$!
for i in $(seq 40); do mountpoint -q vault && break; sleep 0.1; done
mountpoint -q vault || exit 1
ls -l vault >first 2>&1
(while :; do du -s vault >>log/du 2>&1; sleep 1; done) & (while :; do find vault -newer first >>log/index 2>&1; sleep 1; done) &
(while :; do stat -c %s vault/2022 >>log/check 2>&1; sleep 1; done) &
trap 'kill -KILL $VF; finish' EXIT
sleep 5; ready $VF
