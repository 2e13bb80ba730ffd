#!/bin/bash
# The stage of every scenario: runs one scenario's set-up, then its stall or its healthy twin under holdup,
# then cleans up, whatever happened.
#
#   stage.sh SCENARIO_DIRECTORY stall|healthy
#
# In (environment): HOLDUP, the holdup binary, empty to run unobserved; HOLDUP_EVENTS, the file for events, if they are to be kept; PROGRAMS, the compiled helper
# programs; STAGE, an empty directory to work in; HOLDUP_REPORT and HOLDUP_TRUTH, the files to write; of a scenario that names
# `jdks` also JAVA_HOME and JAVA_VERSION.
# Out: holdup's JSON report in HOLDUP_REPORT, what the workload measured itself in HOLDUP_TRUTH (one or more
# lines of JSON, see truth.h).
#
# A scenario is a file `scenario.sh` with the functions `setup`, `stall` and `healthy` (and `teardown` where
# something outlives the namespaces). `setup` gets "stall" or "healthy" as its argument, so that a twin can
# differ in what is set up. `stall` and `healthy` call `observe` exactly once; nothing but the observed
# command is inside the observed time. Or they call `attach` once: then what is observed runs already; or `host`, which looks
# at the whole machine; or `record_machine`, which records it and shows the recording; or `experiment`, which has a wait taken away.
#
# Each run has a mount and a network namespace of its own: mounts, loop devices on them, interfaces and ports
# disappear with its last process.
set -euo pipefail

if [ -z "${STAGED-}" ]; then
    exec env STAGED=1 PATH=/usr/sbin:/usr/bin:/sbin:/bin unshare --mount --net bash "$0" "$@"
fi

# Everything is to be an ordinary user's, what runs already among it: what only root can make is not made then.
if [ "${UNPRIVILEGED-}" = everything ] && [ -z "${DROPPED-}" ]; then
    mount --make-rprivate /
    ip link set lo up
    chmod 0777 "$STAGE"
    exec env DROPPED=1 HOME="$STAGE" setpriv --reuid 65534 --regid 65534 --clear-groups bash "$0" "$@"
fi

scenario=$1
mode=$2
here=$(dirname "$0")
helpers=()
helper_pid=
options=()

# Keeps what enters attribution, for the corpus of `cargo xtask replay`.
keep_events() {
    if [ -n "${HOLDUP_EVENTS-}" ]; then options+=(--events "$HOLDUP_EVENTS"); fi
}

# Runs CMD under holdup (or bare). CMD's own failure is no failure of the stage; holdup's is.
observe() {
    local status=0
    keep_events
    if [ -n "${UNPRIVILEGED-}" ]; then
        open_stage
        observe_as_nobody "$@" || status=$?
    elif [ -n "${HOLDUP-}" ]; then
        "$HOLDUP" run --json "$HOLDUP_REPORT" "${options[@]}" -- "$@" || status=$?
    else
        "$@" || status=$?
    fi
    case $status in
    125 | 126 | 127) return $status ;;
    esac
}

# The same as an ordinary user, who may look at his own processes and no more: holdup samples then.
nobody=(setpriv --reuid 65534 --regid 65534 --clear-groups)
observe_as_nobody() {
    if [ -n "${HOLDUP-}" ]; then
        "${nobody[@]}" "$HOLDUP" run --backend proc --json "$HOLDUP_REPORT" "${options[@]}" -- "$@"
    else
        "${nobody[@]}" "$@"
    fi
}

# What the set-up has made is that user's too; nothing that is mounted is touched, for that may be the stall.
open_stage() {
    local thing
    chmod 0777 "$STAGE"
    touch "$HOLDUP_TRUTH"
    for thing in "$STAGE"/*; do
        if [ ! -L "$thing" ] && ! grep -qF " $thing " /proc/self/mountinfo; then
            chmod -R a+rwX "$thing" 2>/dev/null || true
        fi
    done
}

# Looks with holdup, as `holdup attach ARG…`, at what a helper or the set-up has started (or does without).
attach() {
    if [ -n "${HOLDUP-}" ]; then
        if [ -n "${DROPPED-}" ]; then options+=(--backend proc); fi
        keep_events
        "$HOLDUP" attach --json "$HOLDUP_REPORT" "${options[@]}" "$@" >&2
    fi
}

# Tries with holdup what CMD would gain without a cause: `experiment CAUSE OPTION… -- CMD`. What is gained by hand is the truth.
experiment() {
    local cause=$1
    shift
    if [ -n "${HOLDUP-}" ]; then
        "$HOLDUP" try --without "$cause" --yes --json "$HOLDUP_REPORT" "$@" >&2
    fi
}

# What is gained by hand: runs `as_it_is` and `by_hand`, functions of the scenario, three times each in turn, and tells the truth of
# the middle ones: how long it takes, and what of that is saved. `before_by_hand`, where a scenario has it, sets things back before each.
before_by_hand() { :; }
save_by_hand() {
    local round way began
    for round in 1 2 3; do
        for way in as_it_is by_hand; do
            before_by_hand
            # What that writes counts against the limit of a disk, which is kept in slices of a tenth of a second.
            sync
            sleep 0.2
            began=${EPOCHREALTIME/./}
            "$way"
            echo $((${EPOCHREALTIME/./} - began)) >>"$STAGE/$way.us"
        done
    done
    local as_it_is by_hand
    as_it_is=$(sort -n "$STAGE/as_it_is.us" | sed -n 2p)
    by_hand=$(sort -n "$STAGE/by_hand.us" | sed -n 2p)
    truth "\"waited_ns\": $(((as_it_is - by_hand) * 1000)), \"elapsed_ns\": $((as_it_is * 1000))"
}

# Something that has nothing but a clock to wait for. $stuck becomes its process.
stuck=
start_sleeper() {
    sleep 1000 &
    stuck=$!
    helpers+=("$stuck")
    until grep -q sleep "/proc/$stuck/comm" && grep -q '^State:.S' "/proc/$stuck/status"; do :; done
}

# Something that gets stuck for the stall, in one of the ways of stuck.c, until its file in /proc says so: `start_stuck "$1" selects syscall '^270 '`.
# For the twin, something that has nothing but a clock to wait for.
start_stuck() {
    if [ "$1" = healthy ]; then
        start_sleeper
        return
    fi
    helper "$PROGRAMS/stuck" "$2"
    stuck=$helper_pid
    until grep -q "$4" "/proc/$stuck/$3"; do :; done
}

# Looks for half a second at what $stuck is in since before; what is below it counts as somebody else. $1: which part of that time something holds it up, 0 or 1.
look_at_stuck() {
    attach --pid "$stuck" --only --duration 0.5
    truth "\"waited_ns\": $1, \"elapsed_ns\": 1"
}

# Looks for a second at a process that runs already, and tells whether something holds it up all that time: `look_at PID 1`, or 0.
look_at() {
    attach --pid "$1" --duration 1
    truth "\"waited_ns\": $2, \"elapsed_ns\": 1"
}

# Looks for so many seconds at a program of the set-up, which tells the truth as it ends: `attach_and_end PID SECONDS`.
attach_and_end() {
    attach --pid "$1" --duration "$2"
    kill -TERM "$1"
    wait "$1" || true
}

# Looks with holdup at the whole machine, as `holdup host ARG…`, while what a helper or the set-up has started goes on.
host() {
    if [ -n "${HOLDUP-}" ]; then
        "$HOLDUP" host --json "$HOLDUP_REPORT" "${options[@]}" "$@" >&2
    fi
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

# Runs a command, and notes for how much of that time the first thread of a process was blocked, by the kernel's account of it:
# `truth_of_blocked PID COMMAND…`.
truth_of_blocked() {
    local pid=$1 began ended cpu queued cpu_after queued_after
    shift
    read -r cpu queued _ <"/proc/$pid/schedstat"
    began=$(date +%s%N)
    "$@"
    read -r cpu_after queued_after _ <"/proc/$pid/schedstat"
    ended=$(date +%s%N)
    truth "\"waited_ns\": $((ended - began - (cpu_after - cpu) - (queued_after - queued))), \"elapsed_ns\": $((ended - began))"
}

# The same as the user whose command is observed: that user may look at it.
own_helper() {
    local as_user=()
    if [ -n "${UNPRIVILEGED-}" ]; then
        open_stage
        as_user=("${nobody[@]}")
    fi
    helper "${as_user[@]}" "$@"
}

for part in disk memory network cpu services tasks java machine; do
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

if [ -z "${DROPPED-}" ]; then
    mount --make-rprivate /
    ip link set lo up
fi
mkfifo "$STAGE/go"
setup "$mode"
"$mode"
