# The twin's cgroup has no limit.
setup() {
    local high=24M
    if [ "$1" = healthy ]; then high=max; fi
    echo +memory >/sys/fs/cgroup/cgroup.subtree_control
    cgroup=/sys/fs/cgroup/holdup-scenario-$$
    home=/sys/fs/cgroup
    mkdir "$cgroup"
    echo "$cgroup" >"$STAGE/cgroup"
    echo "$high" >"$cgroup/memory.high"
}
# Only the observed command enters it: holdup's own memory is not to count.
# shellcheck disable=SC2016 # the observed shell expands them
stall() { observe sh -c 'echo $$ >"$0"; exec "$@"' "$cgroup/cgroup.procs" "${timed[@]}" python3 -c '
taken = []
for _ in range(24):
    taken.append(bytearray(1 << 20))
'; }
healthy() { stall; }
