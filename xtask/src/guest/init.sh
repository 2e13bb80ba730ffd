#!/bin/busybox sh
# The guest's first process: `sshd -t` under holdup, then everything out by the serial ports.
# ttyS0 is the console, ttyS1 takes holdup's JSON, ttyS2 the kernel's log.
/bin/busybox --install -s /bin
export PATH=/bin:/usr/sbin HOME=/root
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mount -t tracefs tracefs /sys/kernel/tracing
mount -t bpf bpf /sys/fs/bpf
for port in /dev/ttyS1 /dev/ttyS2; do stty -F $port raw; done

holdup run --json /tmp/report.json -- sshd -t
echo "holdup exited with $?"

cat /tmp/report.json > /dev/ttyS1
dmesg > /dev/ttyS2
poweroff -f
