# Control of CPU time, for scenarios that are about it.

# Puts this shell, and so what it starts from now on, into a cgroup of its own that comes before others: what other work
# on the machine takes is then little beside what the scenario's own programs take from each other. Nice values do not
# do that, since they count only within a cgroup or session.
precedence() {
    if [ -d /sys/fs/cgroup/cpu ]; then
        home=/sys/fs/cgroup/cpu$(sed -n 's/^[0-9]*:\([^:]*,\)\?cpu\(,[^:]*\)\?:\(.*\)/\3/p' /proc/self/cgroup)
        cgroup=$home/holdup-scenario-$$
        mkdir "$cgroup"
        echo 262144 >"$cgroup/cpu.shares"
    else
        home=/sys/fs/cgroup$(sed -n 's/^0:://p' /proc/self/cgroup)
        echo +cpu >/sys/fs/cgroup/cgroup.subtree_control
        cgroup=/sys/fs/cgroup/holdup-scenario-$$
        mkdir "$cgroup"
        echo 10000 >"$cgroup/cpu.weight"
    fi
    echo "$cgroup" >"$STAGE/cgroup"
    echo $$ >"$cgroup/cgroup.procs"
}

# Limits that cgroup to so many microseconds of each 100 ms: `quota 20000`. $cpu_stat is the file that counts how long it
# was stopped.
quota() {
    if [ -e "$cgroup/cpu.cfs_quota_us" ]; then
        echo 100000 >"$cgroup/cpu.cfs_period_us"
        echo "$1" >"$cgroup/cpu.cfs_quota_us"
    else
        echo "$1 100000" >"$cgroup/cpu.max"
    fi
    cpu_stat=$cgroup/cpu.stat
}
