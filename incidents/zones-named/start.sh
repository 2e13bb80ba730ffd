#!/bin/bash
# secondary name server of a hoster: some zones from the own hidden primary, one from a partner
. "$STAGE"
chmod 755 "$RUN"
PP=$(port); HP=$(port); SP=$(port); RC=$(port); mkdir hidden secondary; chown bind secondary hidden
Z="brew.example cargo.example dental.example fjord.example garden.example harbour.example"
KEY='key "ops" { algorithm hmac-sha256; secret "c2Vjb25kYXJ5LW9wcy1rZXktMDE="; };'
zonefile() { printf '$TTL 300\n@ SOA ns1.%s. hostmaster.%s. %s 60 30 86400 300\n  NS ns1\nns1 A 192.0.2.1\nwww A 192.0.2.%s\n' $1 $1 $2 $3; }
n=10; { echo "options { directory \"$RUN/hidden\"; listen-on port $HP { 127.0.0.1; }; listen-on-v6 { none; }; recursion no; notify no; allow-transfer { any; }; pid-file none; session-keyfile none; }; controls { };"
for z in $Z; do n=$((n+1)); zonefile $z 2024110101 $n >hidden/$z.db; echo "zone \"$z\" { type primary; file \"$z.db\"; };"; done; } >hidden/named.conf
(setpriv --reuid bind --regid bind --init-groups /usr/sbin/named -f -n 1 -c "$RUN/hidden/named.conf") >hidden.log 2>&1 &
cat >partner.py <<'EOF'
# primary of the partner: its UDP side answers SOA questions, its TCP side accepts and is silent
import socket, struct, sys, threading
A = (sys.argv[1], int(sys.argv[2]))
def tcp():
    s = socket.create_server(A); held = []
    while True: held.append(s.accept()[0])
def name(n): return b"".join(bytes([len(x)]) + x.encode() for x in n.split(".")) + b"\0"
def soa(q):
    end = q.index(0, 12) + 5; z = "partner.example"
    rd = name("ns." + z) + name("hostmaster." + z) + struct.pack(">5I", 77, 60, 30, 86400, 300)
    return q[:2] + b"\x84\0\0\1\0\1\0\0\0\0" + q[12:end] + b"\xc0\x0c\0\6\0\1" + struct.pack(">IH", 300, len(rd)) + rd
threading.Thread(target=tcp, daemon=True).start()
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); u.bind(A)
while True:
    q, a = u.recvfrom(1500); u.sendto(soa(q), a)
EOF
/usr/bin/python3 -B partner.py 127.0.0.3 $PP & 
{ echo "$KEY options { directory \"$RUN/secondary\"; listen-on port $SP { 127.0.0.1; }; listen-on-v6 { none; }; recursion no; notify no; pid-file none; session-keyfile none; transfers-in 1; tcp-initial-timeout 1200; tcp-idle-timeout 1200; };
controls { inet 127.0.0.1 port $RC allow { 127.0.0.1; } keys { \"ops\"; }; };
zone \"partner.example\" { type secondary; primaries port $PP { 127.0.0.3; }; file \"partner.db\"; };"; } >secondary/named.conf
echo "$KEY options { default-key \"ops\"; default-server 127.0.0.1; default-port $RC; };" >rndc.conf
sleep 1
(setpriv --reuid bind --regid bind --init-groups /usr/sbin/named -f -n 2 -c "$RUN/secondary/named.conf" -L "$RUN/secondary/named.log") >secondary.log 2>&1 & ND=$!
up $SP; sleep 2
for z in $Z; do echo "zone \"$z\" { type secondary; primaries port $HP { 127.0.0.1; }; file \"$z.db\"; };"; done >>secondary/named.conf
rndc -c rndc.conf reconfig >rndc.log 2>&1
cat >resolve.sh <<'EOF'
# what the hoster's monitoring asks
while :; do for z in $2; do echo "$z $(dig +short +time=2 +tries=1 -p $1 @127.0.0.1 www.$z) $(dig +time=2 +tries=1 -p $1 @127.0.0.1 www.$z | grep -o 'status: [A-Z]*')"; sleep 1; done; done
EOF
bash resolve.sh $SP "$Z" >resolve.log 2>&1 &
sleep 5; ready $ND
