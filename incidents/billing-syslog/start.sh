#!/bin/bash
# billing daemon that logs by rsyslog
. "$STAGE"
cat >collector.py <<'EOF'
# log collector: index worker is wedged, sockets stay open and unread
import socket, time
s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
s.bind(("127.0.0.1", 22514)); s.listen(8); conns = []
while True: conns.append(s.accept()); conns[-1][0].recv(512)
EOF
cat >rs.conf <<EOF
global(workDirectory="$RUN" net.enableDNS="off")
main_queue(queue.type="FixedArray" queue.size="200" queue.timeoutEnqueue="600000" queue.discardMark="0" queue.dequeueBatchSize="16" queue.workerThreads="1" queue.lightDelayMark="0" queue.fullDelayMark="190")
module(load="imuxsock" SysSock.Use="off")
input(type="imuxsock" Socket="$RUN/devlog" CreatePath="off" RateLimit.Interval="0")
*.* action(type="omfwd" target="127.0.0.1" port="22514" protocol="tcp" action.resumeRetryCount="-1")
EOF
/usr/bin/python3 collector.py & up 22514
rsyslogd -n -f "$RUN/rs.conf" -i "$RUN/rs.pid" >rs.log 2>&1 &
for i in $(seq 60); do [ -S devlog ] && break; sleep 0.1; done
cat >billingd.py <<'EOF'
import logging, logging.handlers, os, random, time, hashlib
log = logging.getLogger("billing"); log.setLevel(logging.INFO)
h = logging.handlers.SysLogHandler(address="devlog"); h.setFormatter(logging.Formatter("billingd[%(process)d]: %(message)s")); log.addHandler(h)
class Account:
    def __init__(self, n): self.n, self.cents, self.lines = n, 0, []
    def charge(self, c, why): self.cents += c; self.lines.append((c, why))
def rate_calls(acct, rng):
    for _ in range(rng.randrange(4, 9)): acct.charge(rng.randrange(3, 90), "call to +%d" % rng.randrange(10**10))
def invoice(acct):
    digest = hashlib.sha256(repr(acct.lines).encode()).hexdigest()
    log.info("invoice %d total %d lines %s %s", acct.n, acct.cents, acct.lines, digest)
def run():
    rng = random.Random(4); n = 0
    while True:
        n += 1; a = Account(n); rate_calls(a, rng); invoice(a)
        if n % 50 == 0: time.sleep(0.01)
        open("progress", "w").write(str(n))
run()
EOF
/usr/bin/python3 billingd.py & B=$!
last=x; for i in $(seq 60); do sleep 0.4; cur=$(cat progress 2>/dev/null); [ "$cur" = "$last" ] && [ -n "$cur" ] && break; last=$cur; done
sleep 1; ready $B
