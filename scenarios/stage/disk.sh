# A disk of the scenario's own, and limits on it. Sourced by stage.sh.

# Takes away what `dirty_limit` set on this disk: a loop device keeps it when it is used for something else. Also when a disk
# is made, because a scenario that was killed could not.
no_dirty_limit() {
    # Kernels before 6.2 know no such limit.
    if [ -e "/sys/class/bdi/$1/strict_limit" ]; then
        echo 100 >"/sys/class/bdi/$1/max_ratio"
        echo 0 >"/sys/class/bdi/$1/strict_limit"
    fi
}

# An ext4 on a loop device over memory, mounted at $STAGE/mnt; $disk becomes its number. Memory, so that the
# healthy twin does not depend on how busy this machine's disk is.
loop_disk() {
    mkdir -p "$STAGE/ram" "$STAGE/mnt"
    mount -t tmpfs none "$STAGE/ram"
    truncate -s 64M "$STAGE/ram/disk.img"
    mkfs.ext4 -q -F -E lazy_itable_init=0,lazy_journal_init=0 "$STAGE/ram/disk.img"
    mount -o loop,noatime "$STAGE/ram/disk.img" "$STAGE/mnt"
    disk=$(mountpoint -d "$STAGE/mnt")
    no_dirty_limit "$disk"
}

# Tells that disk, as disks with checksums do, that pages must not change while they are written.
stable_pages=
need_stable_pages() {
    umount "$STAGE/mnt"
    stable_pages=$(losetup --find --show "$STAGE/ram/disk.img")
    echo 1 >"/sys/block/${stable_pages#/dev/}/queue/stable_writes"
    mount -o noatime "$stable_pages" "$STAGE/mnt"
    disk=$(mountpoint -d "$STAGE/mnt")
}

let_pages_change() {
    if [ -n "$stable_pages" ]; then
        umount --lazy "$STAGE/mnt"
        echo 0 >"/sys/block/${stable_pages#/dev/}/queue/stable_writes"
        losetup --detach "$stable_pages"
    fi
}

# Forgets what the page cache holds of that disk, and of nothing else.
make_cold() {
    umount "$STAGE/mnt"
    mount -o loop,noatime "$STAGE/ram/disk.img" "$STAGE/mnt"
    disk=$(mountpoint -d "$STAGE/mnt")
}

# Puts this shell, and so the observed command, into a cgroup of its own that limits the disk:
# `throttle write_iops 100`. Kinds: read_bps, write_bps, read_iops, write_iops.
cgroup=
home=
throttle() {
    if [ -d /sys/fs/cgroup/blkio ]; then
        home=/sys/fs/cgroup/blkio$(sed -n 's/^[0-9]*:blkio:\(.*\)/\1/p' /proc/self/cgroup)
        cgroup=$home/holdup-scenario-$$
        mkdir "$cgroup"
        echo "$disk $2" >"$cgroup/blkio.throttle.$1_device"
    else
        # cgroup v2: the controller has to be on in the root, and the keys are riops, wbps and so on.
        home=/sys/fs/cgroup$(sed -n 's/^0:://p' /proc/self/cgroup)
        echo +io >/sys/fs/cgroup/cgroup.subtree_control
        cgroup=/sys/fs/cgroup/holdup-scenario-$$
        mkdir "$cgroup"
        echo "$disk ${1:0:1}${1#*_}=$2" >"$cgroup/io.max"
    fi
    echo "$cgroup" >>"$STAGE/cgroup"
    echo $$ >"$cgroup/cgroup.procs"
}

# Limits that disk also for what the kernel's own threads do for everybody (write-back, the journal):
# `throttle_kernel write_iops 40`. The root's limit on a device of our own touches nobody else; it is taken away at the end.
kernel_limit=
throttle_kernel() {
    kernel_limit=/sys/fs/cgroup/blkio/blkio.throttle.$1_device
    echo "$disk $2" >"$kernel_limit"
}

# Lets no more than so many bytes wait to be written to that disk: `dirty_limit BYTES`. Where a driver or a person sets such a
# limit (removable disks, FUSE), it is strict: it counts although the machine has room.
dirty=
dirty_limit() {
    dirty=$disk
    echo 1 >"/sys/class/bdi/$dirty/strict_limit"
    echo "$1" >"/sys/class/bdi/$dirty/max_bytes"
}

# An ext4 at $STAGE/mnt on a disk that is slow for everybody, the journal included, which no cgroup's limit slows:
# a loop device past the page cache of another one, whose writes are limited. Call `slow_down WRITES_PER_SECOND` when it is set up.
slow=
# Words for mkfs.ext4 may be given.
slow_disk() {
    mkdir -p "$STAGE/ram" "$STAGE/low" "$STAGE/mnt"
    mount -t tmpfs none "$STAGE/ram"
    truncate -s 128M "$STAGE/ram/disk.img"
    mkfs.ext4 -q -F -E lazy_itable_init=0,lazy_journal_init=0 -b 4096 "$STAGE/ram/disk.img"
    mount -o loop,noatime "$STAGE/ram/disk.img" "$STAGE/low"
    disk=$(mountpoint -d "$STAGE/low")
    no_dirty_limit "$disk"
    dd if=/dev/zero of="$STAGE/low/disk.img" bs=1M count=48 conv=fsync status=none
    slow=$(losetup --find --show --direct-io=on "$STAGE/low/disk.img")
    mkfs.ext4 -q -F -E lazy_itable_init=0,lazy_journal_init=0 "$@" "$slow"
    mount -o noatime "$slow" "$STAGE/mnt"
    no_dirty_limit "$(mountpoint -d "$STAGE/mnt")"
}

slow_down() {
    sync -f "$STAGE/mnt"
    throttle_kernel write_iops "$1"
}

remove_slow_disk() {
    if [ -n "$slow" ]; then
        umount "$STAGE/mnt"
        losetup --detach "$slow"
        umount "$STAGE/low"
    fi
}

# rmdir fails while something is left inside; the harness ends that and then removes what $STAGE/cgroup names.
leave_cgroup() {
    if [ -n "$dirty" ]; then
        no_dirty_limit "$dirty"
    fi
    if [ -n "$kernel_limit" ]; then
        echo "$disk 0" >"$kernel_limit"
    fi
    if [ -n "$cgroup" ]; then
        echo $$ >"$home/cgroup.procs"
        rmdir "$cgroup"
    fi
}
