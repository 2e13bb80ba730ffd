#!/bin/bash
# prefork apache for kiosks
. "$STAGE"
P=$(port); echo $P >port; mkdir -p www log; echo '<p>timetable</p>' >www/index.html
cat >apache.conf <<EOF
ServerRoot /usr/lib/apache2
ServerName kiosk.example
Listen 127.0.0.1:$P
PidFile $RUN/apache.pid
DefaultRuntimeDir $RUN
Mutex file:$RUN default
LoadModule mpm_prefork_module modules/mod_mpm_prefork.so
LoadModule authz_core_module modules/mod_authz_core.so
LoadModule dir_module modules/mod_dir.so
LoadModule mime_module modules/mod_mime.so
TypesConfig /etc/mime.types
User www-data
Group www-data
ErrorLog $RUN/log/error.log
StartServers 3
MinSpareServers 1
MaxSpareServers 6
ServerLimit 6
MaxRequestWorkers 6
KeepAlive On
KeepAliveTimeout 300
MaxKeepAliveRequests 0
Timeout 300
DocumentRoot $RUN/www
<Directory $RUN/www>
  Require all granted
</Directory>
EOF
cat >displays.py <<'EOF'
# wall displays: fetch the timetable every four minutes over one connection each
import http.client, sys, threading, time
def display(n):
    c = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]))
    while True:
        c.request("GET", f"/index.html?d={n}", headers={"Connection": "keep-alive"}); c.getresponse().read(); time.sleep(240)
for n in range(7): threading.Thread(target=display, args=(n,), daemon=True).start(); time.sleep(0.3)
time.sleep(9999)
EOF
apache2 -f "$RUN/apache.conf" -DFOREGROUND >log/out 2>&1 & AP=$!
up "$P" || exit 1
/usr/bin/python3 displays.py "$P" & sleep 6
for i in 1 2 3; do (while :; do curl -s -m 120 -o /dev/null -w '%{time_total}\n' "http://127.0.0.1:$P/" >>visitors; sleep 1; done) & done
sleep 4; ready $AP
