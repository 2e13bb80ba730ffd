#!/bin/bash
# meter reader under runit
. "$STAGE"
mkdir -p sv/meter/log logfs; mount -t tmpfs -o size=96k tmpfs "$RUN/logfs" || exit 1
UNDO+=("umount -l $RUN/logfs")
mkdir -p logfs/main
cat >meterd.py <<'EOF'
# reads counters of electricity meters and reports each reading
import random, sys, time, zlib
class Meter:
    def __init__(self, serial): self.serial, self.wh = serial, random.randrange(10**6)
    def poll(self): self.wh += random.randrange(1, 40); return self.wh
def frame(m, wh): body = b"%d;%d" % (m.serial, wh); return body.hex(), zlib.crc32(body)
def report(m, wh):
    raw, crc = frame(m, wh)
    print(f"reading meter={m.serial} wh={wh} raw={raw} crc={crc:08x} tariff=day phase=3 quality=good site=substation-17", flush=True)
meters = [Meter(770000 + i) for i in range(24)]
while True:
    for m in meters: report(m, m.poll())
    time.sleep(0.02)
EOF
cat >sv/meter/run <<EOF
#!/bin/sh
exec 2>&1
exec /usr/bin/python3 $RUN/meterd.py
EOF
cat >sv/meter/log/run <<EOF
#!/bin/sh
exec svlogd -tt $RUN/logfs/main
EOF
printf 's10000000\nn3\n' >logfs/main/config
head -c 40000 /dev/zero >logfs/old-export.bin
chmod 755 sv/meter/run sv/meter/log/run
runsv "$RUN/sv/meter" 2>runsv.log &
for i in $(seq 40); do sleep 0.25; M=$(pgrep -f "$RUN/meterd.py" | head -1); grep -q pausing runsv.log && break; done
sleep 2.5; UNDO+=("kill $M"); ready "$M"
