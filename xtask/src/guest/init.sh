#!/bin/busybox sh
# The guest's first process: `sshd -t` under holdup, as the first to need randomness, then, in a guest that has no source of
# it, the scenarios, then everything out by way of the disk /dev/vda, as one archive. What it and they say goes to the
# console. From the kernel's command line: source, what the kernel can be seeded by.
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

# Loads the modules of a list, but those that are there.
load() {
    while read -r module; do
        [ -d "/sys/module/${module%.ko}" ] || insmod "/modules/$module" || echo "guest: the module $module was not loaded"
    done <"$1"
}

if [ "$source" = virtio-rng ]; then load /modules/early; fi
mkdir /out/randomness
holdup doctor >/out/doctor.txt
cut -d' ' -f1 /proc/uptime >/out/randomness/up
holdup run --json /out/randomness/report.json -- sshd -t
echo "guest: holdup exited with $?"
dmesg >/out/randomness/kernel.log
holdup boot --json /out/randomness/boot.json >/out/randomness/boot.txt

load /modules/order
if [ -e /ring/run.sh ]; then bash /ring/run.sh; fi

dmesg >/out/kernel.log
cat /proc/uptime
tar -C /out -cf /dev/vda .
sync
poweroff -f
