#!/bin/bash
# source server of a small firm: developers push into a shared mercurial repository whose hook asks the CI gate
. "$STAGE"
chmod 755 "$RUN"
export HGRCPATH= HGUSER='dev <dev@firm.example>' HGPLAIN=1; GATE=29518
mkdir -p srv home; hg init srv/app
(cd srv/app; for f in main util report; do seq 50 >$f.c; done; hg commit -q -A -m 'first import')
cat >srv/ci-gate.sh <<EOF
#!/bin/bash
# asks the CI gate whether the change may enter
curl -s -f -X POST -d "node=\$HG_NODE&user=\$HG_SOURCE" http://127.0.0.1:$GATE/gate >/dev/null
EOF
chmod 755 srv/ci-gate.sh
printf '[hooks]\npretxnchangegroup.gate = %s/srv/ci-gate.sh\n[ui]\ntimeout = 1800\n' "$RUN" >srv/app/.hg/hgrc
cat >gate.py <<'EOF'
# CI gate; its build agents are being replaced
import socket, sys
s = socket.create_server(("127.0.0.1", int(sys.argv[1]))); held = []
while True: held.append(s.accept()[0])
EOF
/usr/bin/python3 -B gate.py $GATE & up $GATE
for d in kim lee mo; do hg clone -q srv/app home/$d; (cd home/$d; echo "$d was here" >>main-$d.c; hg commit -q -A -m "work of $d"); done
PORT=$(port); hg -R srv/app serve -a 127.0.0.1 -p $PORT -A web.log -E web.err >serve.log 2>&1 & up $PORT
(while :; do curl -s -o /dev/null -w '%{http_code} %{time_total}\n' http://127.0.0.1:$PORT/; sleep 2; done) >browse.log 2>&1 &
(cd home/kim; exec hg push "$RUN/srv/app" --config ui.timeout=1800) >push-kim.log 2>&1 & sleep 2
(cd home/lee; exec hg push "$RUN/srv/app" --config ui.timeout=1800) >push-lee.log 2>&1 & LEE=$!
sleep 1; (cd home/mo; exec hg push "$RUN/srv/app" --config ui.timeout=1800) >push-mo.log 2>&1 &
sleep 4; ready $LEE
