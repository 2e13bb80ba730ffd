#!/bin/bash
# office resolver
. "$STAGE"
P=$(port); echo $P >port
cat >u.conf <<EOF
server:
  interface: 127.0.0.1
  port: $P
  do-daemonize: no
  username: "unbound"
  chroot: ""
  directory: "$RUN"
  pidfile: ""
  use-syslog: no
  logfile: ""
  num-threads: 2
  local-zone: "office.example." static
  local-data: "files.office.example. A 10.1.1.2"
  local-data: "print.office.example. A 10.1.1.3"
remote-control:
  control-enable: no
EOF
unbound -d -c "$RUN/u.conf" >u.log 2>&1 & UB=$!
sleep 1.5
for h in files print; do (while :; do dig +tries=1 +time=2 +stats @127.0.0.1 -p "$P" $h.office.example | grep -E 'status|Query time' >>$h.log; sleep 0.5; done) & done
sleep 2.5; ready $UB
