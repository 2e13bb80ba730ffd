# A limit on CPU time, for scenarios that need one.

# Puts this shell, and so the observed command, into a cgroup of its own that may run so many microseconds of each
# 100 ms: `quota 20000`. $cpu_stat is the file that counts how long it was stopped.
quota() {
    if [ -d /sys/fs/cgroup/cpu ]; then
        home=/sys/fs/cgroup/cpu$(sed -n 's/^[0-9]*:\(.*,\)*cpu\(,.*\)*:\(.*\)/\3/p' /proc/self/cgroup)
        cgroup=$home/holdup-scenario-$$
        mkdir "$cgroup"
        echo 100000 >"$cgroup/cpu.cfs_period_us"
        echo "$1" >"$cgroup/cpu.cfs_quota_us"
    else
        home=/sys/fs/cgroup$(sed -n 's/^0:://p' /proc/self/cgroup)
        echo +cpu >/sys/fs/cgroup/cgroup.subtree_control
        cgroup=/sys/fs/cgroup/holdup-scenario-$$
        mkdir "$cgroup"
        echo "$1 100000" >"$cgroup/cpu.max"
    fi
    cpu_stat=$cgroup/cpu.stat
    echo "$cgroup" >"$STAGE/cgroup"
    echo $$ >"$cgroup/cgroup.procs"
}
