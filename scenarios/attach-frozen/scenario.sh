# The twin's cgroup is not frozen: it has nothing but a clock to wait for.
# shellcheck disable=SC2016 # the helper's shell expands it
setup() {
    freezer_cgroup
    helper bash -c 'echo $$ >"$0/cgroup.procs"; echo ready >&3; exec 3>&-; exec sleep 1000' "$cgroup"
    stuck=$helper_pid
    until grep -q sleep "/proc/$stuck/comm" && grep -q '^State:.S' "/proc/$stuck/status"; do :; done
    if [ "$1" = stall ]; then freeze; fi
}
stall() { look_at "$stuck" 1; }
healthy() { look_at "$stuck" 0; }
# Frozen, it would not end when it is told to.
teardown() { thaw; }
