#!/bin/busybox sh
# The guest's first process: `sshd -t` under holdup, as the first to need randomness, then the scenarios, then
# everything out by way of the disk /dev/vda, as one archive. What it and they say goes to the console.
/bin/busybox mkdir -p /busybox
/bin/busybox --install -s /busybox
export PATH=/usr/sbin:/usr/bin:/busybox HOME=/root
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/pts /dev/shm
mount -t devpts devpts /dev/pts
mount -t tmpfs tmpfs /dev/shm
mount -t tracefs tracefs /sys/kernel/tracing
mount -t bpf bpf /sys/fs/bpf
mount -t cgroup2 cgroup /sys/fs/cgroup
ip link set lo up

mkdir /out/randomness
holdup run --json /out/randomness/report.json -- sshd -t
echo "guest: holdup exited with $?"
dmesg >/out/randomness/kernel.log
holdup doctor >/out/doctor.txt

while read -r module; do
    insmod "/modules/$module" || echo "guest: the module $module was not loaded"
done </modules/order
bash /ring/run.sh

dmesg >/out/kernel.log
cat /proc/uptime
tar -C /out -cf /dev/vda .
sync
poweroff -f
