#!/bin/bash
# The stage of every scenario: runs one scenario's set-up, then its stall or its healthy twin under holdup,
# then cleans up, whatever happened.
#
#   stage.sh SCENARIO_DIRECTORY stall|healthy
#
# In (environment): HOLDUP, the holdup binary, empty to run unobserved; PROGRAMS, the compiled helper
# programs; STAGE, an empty directory to work in; HOLDUP_REPORT and HOLDUP_TRUTH, the files to write.
# Out: holdup's JSON report in HOLDUP_REPORT, what the workload measured itself in HOLDUP_TRUTH (one or more
# lines of JSON, see truth.h).
#
# A scenario is a file `scenario.sh` with the functions `setup`, `stall` and `healthy` (and `teardown` where
# something outlives the namespaces). `setup` gets "stall" or "healthy" as its argument, so that a twin can
# differ in what is set up. `stall` and `healthy` call `observe` exactly once; nothing but the observed
# command is inside the observed time.
#
# Each run has a mount and a network namespace of its own: mounts, loop devices on them, interfaces and ports
# disappear with its last process.
set -euo pipefail

if [ -z "${STAGED-}" ]; then
    exec env STAGED=1 PATH=/usr/sbin:/usr/bin:/sbin:/bin unshare --mount --net bash "$0" "$@"
fi

scenario=$1
mode=$2
here=$(dirname "$0")
helpers=()
helper_pid=
options=()

# Runs CMD under holdup (or bare). CMD's own failure is no failure of the stage; holdup's is.
observe() {
    local status=0
    if [ -n "${HOLDUP-}" ]; then
        "$HOLDUP" run --json "$HOLDUP_REPORT" "${options[@]}" -- "$@" || status=$?
    else
        "$@" || status=$?
    fi
    case $status in
    125 | 126 | 127) return $status ;;
    esac
}

# Starts a helper outside the observed command and returns once it has said "ready" on descriptor 3.
# A helper that does not get there ends the run.
helper() {
    local word= ready=$STAGE/ready.${#helpers[@]}
    # One for each: the end of an earlier helper's would be taken for this one's.
    mkfifo "$ready"
    "$@" 3>"$ready" &
    helper_pid=$!
    helpers+=("$helper_pid")
    read -r word <"$ready" || true
    if [ "$word" != ready ]; then
        echo "stage: the helper did not get ready: $*" >&2
        return 1
    fi
}

# Words before a third-party command that measure it from inside: `observe "${timed[@]}" curl …`.
# What is measured is chosen by TRUTH_OF (truth.c).
timed=(env "LD_PRELOAD=$PROGRAMS/truth.so" "HOLDUP_TRUTH=$HOLDUP_TRUTH")

# Words before an observed command that open the gate: a helper that reads a line (the command's process id)
# from $STAGE/go starts its delay only now, so that the time holdup takes to start does not eat it.
# shellcheck disable=SC2016 # the observed shell expands them
gated=(sh -c 'echo $$ >"$0"; exec "$@"' "$STAGE/go")

# Adds numbers to the truth: `truth '"elapsed_ns": 1'`.
truth() {
    printf '{%s}\n' "$1" >>"$HOLDUP_TRUTH"
}

for part in disk memory network cpu; do
    # shellcheck source=/dev/null
    . "$here/$part.sh"
done
teardown() { :; }
# shellcheck source=/dev/null
. "$scenario/scenario.sh"

finish() {
    local status=$?
    trap - EXIT
    set +e
    teardown
    for pid in "${helpers[@]}"; do
        kill "$pid" 2>/dev/null
    done
    # FUSE mounts and loop devices are let go now rather than when the last helper is gone.
    wait
    leave_cgroup
    let_pages_change
    remove_slow_disk
    remove_memory_cgroup
    swap_off
    umount --recursive --lazy "$STAGE"/mnt 2>/dev/null
    umount --lazy "$STAGE"/ram 2>/dev/null
    exit "$status"
}
trap finish EXIT
trap 'exit 143' TERM INT HUP

mount --make-rprivate /
ip link set lo up
mkfifo "$STAGE/go"
setup "$mode"
"$mode"
