#!/bin/bash
# supplier file drop
. "$STAGE"
P=$(port); mkdir -p empty ftproot/outgoing; chmod 755 ftproot; for i in 1 2 3; do echo "batch $i" >ftproot/outgoing/b$i.csv; done; echo $P >port
cat >vsftpd.conf <<EOF
listen=YES
listen_address=127.0.0.1
listen_port=$P
background=NO
anonymous_enable=YES
local_enable=NO
anon_root=$RUN/ftproot
ftp_username=ftp
nopriv_user=nobody
secure_chroot_dir=$RUN/empty
pasv_min_port=20500
pasv_max_port=20900
accept_timeout=300
xferlog_enable=YES
xferlog_file=$RUN/xfer.log
vsftpd_log_file=$RUN/vsftpd.log
dual_log_enable=YES
seccomp_sandbox=NO
connect_from_port_20=NO
isolate=NO
isolate_network=NO
EOF
vsftpd "$RUN/vsftpd.conf" & VS=$!
up "$P" || exit 1
cat >supplier_sync.py <<'EOF'
# supplier side: behind a NAT that drops what goes to the data port
import socket, sys, time, re
class Session:
    def __init__(self, port):
        self.s = socket.create_connection(("127.0.0.1", port)); self.f = self.s.makefile("rw", newline="\r\n"); self.reply()
    def reply(self):
        while True:
            l = self.f.readline()
            if len(l) < 4 or l[3] == " ": return l
    def cmd(self, c): self.f.write(c + "\r\n"); self.f.flush(); return self.reply()
    def open_data(self, answer):
        h = list(map(int, re.search(r"\((.*)\)", answer).group(1).split(",")))
        s = socket.socket(); s.settimeout(0.5)
        try: s.connect(("240.0.0.9", h[4] * 256 + h[5]))
        except OSError: pass
        return s
s = Session(int(sys.argv[1]))
s.cmd("USER anonymous"); s.cmd("PASS sync@supplier.example"); s.cmd("CWD outgoing"); s.cmd("TYPE I")
d = s.open_data(s.cmd("PASV"))
print(s.cmd("LIST"), flush=True)
time.sleep(600)
EOF
/usr/bin/python3 supplier_sync.py "$P" >sync.log 2>&1 &
sleep 3
L=""; for c in $(pgrep -P $VS); do for g in $c $(pgrep -P $c); do L=$g; done; done
for c in $(pgrep -f "^vsftpd $RUN/vsftpd.conf"); do UNDO+=("kill -KILL $c"); done
ready "${L:-$VS}"
