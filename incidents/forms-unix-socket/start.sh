#!/bin/bash
# a form server: lighttpd before a FastCGI program at a Unix socket, whose only process hangs before it accepts
. "$STAGE"
P=$(port); mkdir www
cat >forms.py <<'E'
# the form program: listens, then reads its rules from a server that is gone
import socket, sys, time
listener = socket.socket(socket.AF_UNIX); listener.bind(sys.argv[1]); listener.listen(16)
def read_rules(): time.sleep(600)
read_rules()
E
/usr/bin/python3 forms.py "$RUN/forms.sock" & sleep 0.4
cat >l.conf <<E
server.document-root = "$RUN/www"
server.port = $P
server.bind = "127.0.0.1"
server.modules = ("mod_fastcgi")
fastcgi.server = ("/" => (("socket" => "$RUN/forms.sock", "check-local" => "disable")))
E
lighttpd -D -f l.conf >l.log 2>&1 & WEB=$!
up "$P" || exit 1
curl -s -m 300 "http://127.0.0.1:$P/order" >/dev/null &
sleep 2; ready $WEB
