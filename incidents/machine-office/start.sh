#!/bin/bash
# an ordinary machine
. "$STAGE"
. "$(dirname "$STAGE")/machine.sh"
inhabitants redis nginx pyhttp broker dns logger stats cache

cat >nightly.sh <<'EOF'
#!/bin/bash
# small report, politely: compresses the log every few seconds
while :; do gzip -c log/heartbeat >heartbeat.gz; sleep 4; done
EOF
bash nightly.sh &
(exec 7>job.lock; while :; do flock 7; sleep 0.3; flock -u 7; sleep 0.5; done) & (exec 7>job.lock; while :; do flock 7; sleep 0.1; flock -u 7; sleep 0.9; done) &

sleep 3; ready $$
