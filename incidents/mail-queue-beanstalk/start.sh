#!/bin/bash
# outgoing mail jobs
. "$STAGE"
P=$(port); echo $P >port
beanstalkd -l 127.0.0.1 -p "$P" &
up "$P" || exit 1
cat >bs.py <<'EOF'
import socket
class Beanstalk:
    def __init__(self, port): self.s = socket.create_connection(("127.0.0.1", port)); self.f = self.s.makefile("rwb")
    def cmd(self, line, body=None):
        self.f.write(line.encode() + b"\r\n" + (body + b"\r\n" if body is not None else b"")); self.f.flush()
        return self.f.readline().decode().strip()
    def put(self, body): return self.cmd(f"put 100 0 60 {len(body)}", body)
    def reserve(self):
        r = self.cmd("reserve").split(); body = self.f.read(int(r[2]) + 2); return r[1], body
EOF
cat >mailer.py <<'EOF'
import sys, json, time
from bs import Beanstalk
def render(job): return f"To: {job['to']}\nSubject: order {job['order']}\n\nThanks.\n"
def deliver(text):
    with open("outbox", "a") as f: f.write(text)
def main():
    q = Beanstalk(int(sys.argv[1])); q.cmd("watch outmail"); q.cmd("ignore default")
    while True:
        jid, body = q.reserve()
        deliver(render(json.loads(body))); q.cmd(f"delete {jid}")
main()
EOF
cat >orders.py <<'EOF'
import sys, json, time
from bs import Beanstalk
q = Beanstalk(int(sys.argv[1])); q.cmd("use outmail"); n = 0
while True:
    n += 1; q.put(json.dumps({"to": f"c{n}@example.net", "order": 9000 + n}).encode()); time.sleep(0.3)
EOF
cat >deploy.py <<'EOF'
import sys
from bs import Beanstalk
print(Beanstalk(int(sys.argv[1])).cmd("pause-tube outmail 3600"))
EOF
/usr/bin/python3 orders.py "$P" & /usr/bin/python3 mailer.py "$P" & MW=$!
sleep 2; /usr/bin/python3 deploy.py "$P" >deploy.log; sleep 3; ready $MW
