#!/bin/bash
# name service of a branch office
. "$STAGE"
chmod 755 "$RUN"; P=$(port); U=$(port)
/usr/bin/python3 -B "$HERE/uplink.py" "$U" & sleep 0.5
dnsmasq -k -C /dev/null -p "$P" --listen-address=127.0.0.1 --bind-interfaces --no-resolv --no-hosts --server="127.0.0.9#$U" --dns-forward-max=25 --cache-size=200 -u nobody -g nogroup --pid-file= --log-facility="$RUN/dnsmasq.log" & DM=$!
sleep 1; /usr/bin/python3 -B "$HERE/tills.py" "$P" &
sleep 6; ready $DM
