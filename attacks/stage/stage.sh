#!/bin/bash
# The stage of every attack: starts the hostile program, runs holdup as root against it, and looks from outside at what
# was reached.
#
#   stage.sh ATTACK_DIRECTORY
#
# In (environment): HOLDUP, the binary; PROGRAMS, the compiled programs; STAGE, an empty directory of root's that all may
# enter; CGROUP, a cgroup for all processes; ATTACKER, a uid that nobody else has; TIME_LIMIT and CPU_LIMIT, in seconds, for an
# observation of a second; BASELINE_MS, what an innocent one takes.
# Out: lines `held: …` and `lost: …` in RESULTS.
#
# An attack is a file `attack.sh` with a function `attack`. Its mounts and interfaces are gone with its last process, and the
# caller kills the cgroup.
set -euo pipefail

if [ -z "${STAGED-}" ]; then
    echo $$ >"$CGROUP/cgroup.procs"
    exec env STAGED=1 PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 unshare --mount --net --propagation private bash "$0" "$@"
fi

attack_folder=$1
here=$(dirname "$0")
# What the hostile user owns, and what is root's: DIRECTORY/secret must never change, and nothing may appear beside it.
MINE=$STAGE/attacker
ROOTS=$STAGE/root
hostile_pid=
hostiles=0
mkdir "$MINE" "$ROOTS" "$STAGE/out" "$STAGE/programs" "$CGROUP/hostile"
chown "$ATTACKER:$ATTACKER" "$MINE"
cp "$PROGRAMS"/* "$STAGE/programs/"
# The checkout may be where only root gets; a copy is not.
PROGRAMS=$STAGE/programs
echo "root's secret" >"$ROOTS/secret"
chmod 0600 "$ROOTS/secret"
ip link set lo up

held() { printf 'held: %s\n' "$*" >>"$RESULTS"; }
lost() { printf 'lost: %s\n' "$*" >>"$RESULTS"; }

# Words before a command that make it the hostile user's.
as_attacker=(setpriv --reuid "$ATTACKER" --regid "$ATTACKER" --clear-groups --inh-caps=-all
    env -i "HOME=$MINE" PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 "PROGRAMS=$PROGRAMS" "STAGE=$STAGE" "MINE=$MINE" "HERE=$attack_folder")

# Runs a command as the hostile user, in his folder, to its end.
as_user() { (echo "$BASHPID" >"$CGROUP/hostile/cgroup.procs"; cd "$MINE"; exec "${as_attacker[@]}" "$@"); }

# Starts a hostile program, and returns when it has said `ready` or `ready PID` on descriptor 3: $hostile_pid is then whom to
# look at. One that does not get there ends the attack.
hostile() { set_up "${as_attacker[@]}" "$@"; }
# The same for one that a program with more rights starts for him, as fusermount3 does; it gives up those rights itself.
from_root() { set_up "$@"; }
set_up() {
    local word='' pid='' ready
    hostiles=$((hostiles + 1))
    ready=$STAGE/ready.$hostiles
    mkfifo "$ready"
    (echo "$BASHPID" >"$CGROUP/hostile/cgroup.procs"; cd "$MINE"; exec "$@" 3>"$ready" </dev/null) &
    hostile_pid=$!
    read -t 60 -r word pid <"$ready" || true
    if [ "$word" != ready ]; then
        lost "the hostile program did not get ready: $*"
        exit 1
    fi
    if [ -n "$pid" ]; then hostile_pid=$pid; fi
}

# Starts holdup as root: `start LABEL ARG…`. Its output goes to $STAGE/out/LABEL.out and .err.
start() {
    local label=$1
    shift
    mkdir "$CGROUP/$label"
    mkfifo "$STAGE/end.$label"
    (
        status=0
        (
            echo "$BASHPID" >"$CGROUP/$label/cgroup.procs"
            echo "$BASHPID" >"$STAGE/pid.$label"
            exec "$HOLDUP" "$@"
        ) </dev/null >"$STAGE/out/$label.out" 2>"$STAGE/out/$label.err" || status=$?
        echo "$status" >"$STAGE/end.$label"
    ) &
    # Opened for both, so that neither side waits for the other to open it.
    exec {end_fd}<>"$STAGE/end.$label"
    eval "end_$label=$end_fd"
    until [ -s "$STAGE/pid.$label" ]; do sleep 0.01; done
    holdup_pid=$(cat "$STAGE/pid.$label")
}

cpu_us() { sed -n 's/^usage_usec //p' "$CGROUP/$1/cpu.stat"; }

# Waits for its end, at most SECONDS: `finish LABEL [SECONDS]`. $status is its exit status, or `hang`. What it used of the CPU, with
# all its children, and what it left behind is judged too.
finish() {
    local label=$1 limit=${2-$TIME_LIMIT} fd used
    eval "fd=\$end_$label"
    status=hang
    if read -r -t "$limit" status <&"$fd"; then
        case $status in
        0 | 1 | 2 | 125 | 130 | 143) held "$label ended with $status" ;;
        *) lost "$label ended with status $status" ;;
        esac
    else
        status=hang
        lost "$label did not end in $limit s"
        for pid in $(cat "$CGROUP/$label/cgroup.procs"); do
            printf '%s %s\n' "$pid" "$(tr '\n' ' ' <"/proc/$pid/stat" 2>/dev/null | cut -c 1-60)" >&2
            for task in "/proc/$pid/task"/*; do
                printf '  %s %s\n' "$(cat "$task/comm" 2>/dev/null)" "$(cat "$task/wchan" 2>/dev/null)" >&2
            done
        done
        kill -KILL "$(cat "$STAGE/pid.$label")" || true
        if ! read -r -t 10 _ <&"$fd"; then lost "$label is there after SIGKILL"; fi
    fi
    at_rest "$label"
    used=$(cpu_us "$label")
    if [ "$used" -gt $((CPU_LIMIT * 1000000)) ]; then
        lost "$label used $((used / 1000000)) s of CPU, at most $CPU_LIMIT"
    else
        held "$label used $((used / 1000)) ms of CPU"
    fi
}

# What it left behind must not run: within 20 s there is a second in which that uses less than 50 ms.
at_rest() {
    local label=$1 before after
    for _ in {1..20}; do
        if grep -q 'populated 0' "$CGROUP/$label/cgroup.events"; then return; fi
        before=$(cpu_us "$label")
        sleep 1
        after=$(cpu_us "$label")
        if [ $((after - before)) -lt 50000 ]; then
            echo "stage: $label left $(wc -l <"$CGROUP/$label/cgroup.procs") processes, which do not run" >&2
            return
        fi
    done
    lost "what $label left behind burns a CPU"
}

# Both: `look LABEL ARG…`.
look() {
    start "$@"
    finish "$1"
}

# Sends it a signal and gives it as long as an innocent one takes: `end_with SIGNAL LABEL`.
end_with() {
    kill "-$1" "$(cat "$STAGE/pid.$2")" || true
    finish "$2"
}

# While the attack goes on, `attach` to an innocent process gives its verdict in about the time that it takes without.
innocent() {
    local pid began took limit=$((TIME_LIMIT * 1000))
    (echo "$BASHPID" >"$CGROUP/hostile/cgroup.procs"; exec sleep 1000) &
    pid=$!
    began=${EPOCHREALTIME/./}
    start innocent attach -d 1 -p "$pid"
    finish innocent
    took=$(((${EPOCHREALTIME/./} - began) / 1000))
    if [ "$took" -gt "$limit" ]; then
        lost "attach to an innocent process took $took ms, without the attack $BASELINE_MS ms"
    else
        held "attach to an innocent process took $took ms, without the attack $BASELINE_MS ms"
    fi
    grep -q 'sleeping\|sleep' "$STAGE/out/innocent.out" || lost "attach to an innocent process gave no verdict"
    kill "$pid"
}

# A node of FUSE that anybody may open, as distributions have it: $FUSE_NODE.
fuse_node() {
    FUSE_NODE=$STAGE/devices/fuse
    mkdir "$STAGE/devices"
    mount -t tmpfs -o mode=0755 devices "$STAGE/devices"
    mknod -m 0666 "$FUSE_NODE" c 10 229
}

# Remembers what root has: every name below $ROOTS, its owner, mode and content.
picture() { (cd "$1" && find . -printf '%p %u %g %m %l\n' | sort && find . -type f -exec sha256sum {} + | sort); }
picture "$ROOTS" >"$STAGE/picture"
# Whether that is all there is: `unchanged`.
unchanged() {
    if picture "$ROOTS" | cmp -s - "$STAGE/picture"; then
        held "root's files are as they were"
    else
        lost "root's files were changed: $(picture "$ROOTS" | diff "$STAGE/picture" - | sed -n '/^[<>]/p' | head -3 | tr '\n' ';')"
    fi
}
# Takes the picture anew, after the attack has made more files of root's.
guard() { picture "$ROOTS" >"$STAGE/picture"; }

# No output of LABEL and none of the files named has this text: `not_in TEXT FILE…`.
not_in() {
    local text=$1 file
    shift
    for file in "$@"; do
        if grep -qaF -- "$text" "$file"; then
            lost "$(basename "$file") has $(printf %q "$text")"
        else
            held "$(basename "$file") does not have it"
        fi
    done
}

# No control character but a new line and a tab, and nothing that changes the direction of text: `plain FILE…`. A terminal's own
# colours are not there, for stdout is a file.
plain() {
    local file
    for file in "$@"; do
        if python3 "$here/plain.py" "$file"; then
            held "$(basename "$file") has no control characters"
        else
            lost "$(basename "$file") has control characters or marks of direction"
        fi
    done
}

# shellcheck source=/dev/null
. "$attack_folder/attack.sh"
attack
