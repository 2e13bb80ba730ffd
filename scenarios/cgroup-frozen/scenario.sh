# The twin's cgroup is not frozen.
freezer=/sys/fs/cgroup/unified
if [ ! -d "$freezer" ]; then freezer=/sys/fs/cgroup; fi
freezer_home=$freezer$(sed -n 's/^0:://p' /proc/self/cgroup)
freezer=$freezer/holdup-scenario-frozen-$$
setup() {
    mkdir "$freezer"
    echo "$freezer" >>"$STAGE/cgroup"
    helper python3 "$scenario/freeze.py" "$1" "$STAGE/go" "$freezer" "$STAGE/done"
    truth "\"holder_pid\": $helper_pid"
}
# Only the program is frozen, and not holdup: the cgroup is entered on the way to it.
stall() {
    observe sh -c 'echo $$ >"$0/cgroup.procs"; exec "$@"' "$freezer" "$PROGRAMS/steps" "$STAGE/go" "$STAGE/done"
}
healthy() { stall; }
teardown() {
    echo 0 >"$freezer/cgroup.freeze"
    rmdir "$freezer"
}
