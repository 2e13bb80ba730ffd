# Control of CPU time, for scenarios that are about it.

# Makes a cgroup of its own that gets so many times (ten) what another does. More does harm where a scenario keeps every
# CPU busy: who holds a lock of the kernel and hardly gets to run keeps everybody waiting that needs it, the scenario
# included.
make_cpu_cgroup() {
    local times=${1-10}
    if [ -d /sys/fs/cgroup/cpu ]; then
        home=/sys/fs/cgroup/cpu$(sed -n 's/^[0-9]*:\([^:]*,\)\?cpu\(,[^:]*\)\?:\(.*\)/\3/p' /proc/self/cgroup)
        cgroup=$home/holdup-scenario-$$
        mkdir "$cgroup"
        echo $((1024 * times)) >"$cgroup/cpu.shares"
    else
        home=/sys/fs/cgroup$(sed -n 's/^0:://p' /proc/self/cgroup)
        echo +cpu >/sys/fs/cgroup/cgroup.subtree_control
        cgroup=/sys/fs/cgroup/holdup-scenario-$$
        mkdir "$cgroup"
        echo $((100 * times)) >"$cgroup/cpu.weight"
    fi
    echo "$cgroup" >"$STAGE/cgroup"
}

# Puts this shell, and so what it starts from now on, into such a cgroup: what other work on the machine takes is then
# little beside what the scenario's own programs take from each other. Nice values do not do that, since they count only
# within a cgroup or session.
precedence() {
    # An ordinary user has none.
    if [ -n "${DROPPED-}" ]; then return; fi
    make_cpu_cgroup "$@"
    echo $$ >"$cgroup/cgroup.procs"
}

# Makes such a cgroup that may run so many microseconds of each 100 ms: `quota 20000`. The words before an observed
# command that put it, and not holdup, there: `observe "${limited[@]}" CMD`. $cpu_stat is the file that counts how long it
# was stopped.
quota() {
    make_cpu_cgroup
    if [ -e "$cgroup/cpu.cfs_quota_us" ]; then
        echo 100000 >"$cgroup/cpu.cfs_period_us"
        echo "$1" >"$cgroup/cpu.cfs_quota_us"
    else
        echo "$1 100000" >"$cgroup/cpu.max"
    fi
    cpu_stat=$cgroup/cpu.stat
    # shellcheck disable=SC2016 # the observed shell expands them
    limited=(sh -c 'echo $$ >"$0"; exec "$@"' "$cgroup/cgroup.procs")
}

# Has this shell, and so all that it starts, run before ordinary work on the machine, beside a limit on a disk, which has the cgroup: for
# what takes its time twice, at different times, and compares. What it starts must hardly use a CPU.
come_first() {
    chrt --rr --pid 1 $$
}
