# Cgroups of a scenario's own that limit how many tasks there may be, or freeze them. Sourced by stage.sh.

# Makes a cgroup that may have so many processes and threads: `task_cgroup 20`. $cgroup becomes its directory.
task_cgroup() {
    if [ -d /sys/fs/cgroup/pids ]; then
        home=/sys/fs/cgroup/pids$(sed -n 's/^[0-9]*:pids:\(.*\)/\1/p' /proc/self/cgroup)
    else
        home=/sys/fs/cgroup
        echo +pids >/sys/fs/cgroup/cgroup.subtree_control
    fi
    cgroup=$home/holdup-scenario-tasks-$$
    mkdir "$cgroup"
    echo "$cgroup" >>"$STAGE/cgroup"
    echo "$1" >"$cgroup/pids.max"
}

# Makes a cgroup that can be frozen (`freeze`) and thawed (`thaw`). $cgroup becomes its directory.
freezer_cgroup() {
    home=/sys/fs/cgroup/unified
    [ -d "$home" ] || home=/sys/fs/cgroup
    cgroup=$home/holdup-scenario-frozen-$$
    mkdir "$cgroup"
    echo "$cgroup" >>"$STAGE/cgroup"
}

freeze() {
    echo 1 >"$cgroup/cgroup.freeze"
    until grep -q '^frozen 1' "$cgroup/cgroup.events"; do sleep 0.1; done
}

thaw() {
    echo 0 >"$cgroup/cgroup.freeze"
}
