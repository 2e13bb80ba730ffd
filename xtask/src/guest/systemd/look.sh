#!/usr/bin/busybox sh
# The last of a guest with systemd: once all is started it asks holdup how the boot went, and puts everything out by way of
# the disk /dev/vda, as one archive.
mkdir -p /busybox /out
busybox --install -s /busybox
export PATH=/usr/sbin:/usr/bin:/busybox HOME=/root
while [ "$(systemctl is-system-running)" = starting ]; do sleep 1; done
holdup boot --json /out/boot.json >/out/boot.txt 2>/out/boot.err
echo "guest: holdup exited with $?" >/dev/console
cat /out/boot.txt >/dev/console
journalctl -b -q --no-pager -o short-monotonic >/out/journal.txt
systemd-analyze --no-pager critical-chain >/out/chain.txt
while read -r module; do insmod "/modules/$module"; done </modules/order
dmesg >/out/kernel.log
tar -C /out -cf /dev/vda .
sync
poweroff -f
