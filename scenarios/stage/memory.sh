# Memory limits and swap of a scenario's own. Sourced by stage.sh.

# Makes a cgroup with this much memory: `limit_memory BYTES`. $memory_cgroup becomes its directory. holdup itself needs more
# than such a cgroup has, so that only the command enters it: `observe "${confined[@]}" CMD`.
memory_cgroup=
confined=()
limit_memory() {
    local limit=memory.max
    if [ -d /sys/fs/cgroup/memory ]; then
        memory_cgroup=/sys/fs/cgroup/memory$(sed -n 's/^[0-9]*:memory:\(.*\)/\1/p' /proc/self/cgroup)
        limit=memory.limit_in_bytes
    else
        echo +memory >/sys/fs/cgroup/cgroup.subtree_control
        memory_cgroup=/sys/fs/cgroup
    fi
    memory_cgroup+=/holdup-scenario-memory-$$
    mkdir "$memory_cgroup"
    echo "$memory_cgroup" >>"$STAGE/cgroup"
    echo "$1" >"$memory_cgroup/$limit"
    # shellcheck disable=SC2016 # the observed shell expands them
    confined=(sh -c 'echo $$ >"$0/cgroup.procs"; exec "$@"' "$memory_cgroup")
}

remove_memory_cgroup() {
    if [ -n "$memory_cgroup" ]; then
        rmdir "$memory_cgroup"
    fi
}

# Swap on a loop device over memory, so that it is no slower than the limit that a scenario sets on it; $disk becomes
# its number. The swap belongs to the machine: what is switched on here is switched off in `swap_off`, whatever happened.
swap_device=
swap_disk() {
    mkdir -p "$STAGE/ram"
    mount -t tmpfs none "$STAGE/ram"
    truncate -s 64M "$STAGE/ram/swap.img"
    swap_device=$(losetup --find --show "$STAGE/ram/swap.img")
    swap_ready
}

# The same compressed in memory.
swap_compressed() {
    local number
    number=$(cat /sys/class/zram-control/hot_add)
    swap_device=/dev/zram$number
    [ -e "$swap_device" ] || mknod "$swap_device" b "$(cut -d: -f1 "/sys/block/zram$number/dev")" "$number"
    echo 256M >"/sys/block/zram$number/disksize"
    swap_ready
}

swap_ready() {
    disk=$(cat "/sys/class/block/${swap_device#/dev/}/dev")
    mkswap -q "$swap_device"
    swapon "$swap_device"
}

swap_off() {
    local name=${swap_device#/dev/}
    [ -n "$swap_device" ] || return 0
    swapoff "$swap_device"
    case $name in
    loop*) losetup --detach "$swap_device" ;;
    zram*)
        echo 1 >"/sys/block/$name/reset"
        echo "${name#zram}" >/sys/class/zram-control/hot_remove
        ;;
    esac
}
