#!/bin/bash
# gearman for image work
. "$STAGE"
P=$(port); echo $P >port
gearmand -L 127.0.0.1 -p "$P" -l stderr -u gearman --verbose ERROR >g.log 2>&1 & GM=$!
up "$P" || exit 1
for i in 1 2; do gearman -h 127.0.0.1 -p "$P" -w -f wordcount wc >/dev/null 2>&1 & done
(while :; do s=$(date +%s.%N); echo a b c | gearman -h 127.0.0.1 -p "$P" -f wordcount >>answers 2>&1; sleep 0.8; done) &
sleep 3; ready $GM
