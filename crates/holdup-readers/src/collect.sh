#!/bin/sh
# Collects what a machine can tell of what it waits for, for `holdup read` on another machine.
#
#     sh collect.sh > collected.txt        # then: holdup read collected.txt
#     SECONDS_EACH=10 sh collect.sh        # longer intervals; the default is 3 seconds for each tool
#     JVMS=1 sh collect.sh                 # thread dumps too: pauses each JVM of this user for some milliseconds,
#                                          # and the JVM makes a socket in /tmp to be asked by
#
# It writes to stdout and nowhere else, changes nothing, asks no file system for its size and no server for anything, and
# gives up on a command that does not end. Without root it collects less. What the machine does not have is left out.
# It takes about half a minute. Host name, command names, addresses and log lines will be in the output: read it before
# you hand it on.

LC_ALL=C
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
export LC_ALL PATH
seconds=${SECONDS_EACH:-3}
case $seconds in '' | *[!0-9]* | 0 | ????*) seconds=3 ;; esac
# No part of the output can contain this by chance, and be taken for the beginning of another.
mark=$$-$(date +%s)
# Log lines that are kept, the last ones.
lines=20000

has() {
    command -v "$1" >/dev/null 2>&1
}

# limited SECONDS COMMAND…: ends it when its time is over.
if has timeout && timeout 5 true 2>/dev/null; then
    limited() {
        timeout "$@"
    }
else
    limited() {
        limit=$1
        shift
        "$@" &
        command_pid=$!
        (
            sleep "$limit"
            kill "$command_pid"
        ) >/dev/null 2>&1 &
        watch_pid=$!
        wait "$command_pid"
        limited_status=$?
        kill "$watch_pid" 2>/dev/null
        return "$limited_status"
    }
fi

# part SECONDS COMMAND…: its output, with what it is and when it began. The empty line ends an output that does not end
# with a line's end; the reader takes it away again.
part() {
    limit=$1
    shift
    has "$1" || return 0
    up=
    [ -r /proc/uptime ] && read -r up _ </proc/uptime
    printf '#holdup-part %s unix=%s uptime=%s %s\n' "$mark" "$(date +%s.%N)" "$up" "$*"
    limited "$limit" "$@" </dev/null 2>/dev/null
    printf '\n#holdup-end %s status=%s\n' "$mark" "$?"
}

# file PATH: a file of the kernel's, which is read at once or not at all.
file() {
    [ -r "$1" ] && part 5 cat "$1"
}

printf '#holdup-collect 1 %s\n' "$mark"

part 5 uname -a
part 5 uptime
file /proc/loadavg
file /proc/cmdline
file /proc/meminfo
# With the files' names: they all look the same.
[ -r /proc/pressure/io ] && part 5 grep -H . /proc/pressure/cpu /proc/pressure/memory /proc/pressure/io
file /proc/mounts
file /proc/swaps
part 5 free -k
part 5 swapon --show
part 10 lsblk

# Intervals. The first report of some is of the time since boot; the reader knows.
interval=$((seconds + 1))
limit=$((interval + 10))
part "$limit" iostat -xzt 1 "$interval"
part "$limit" vmstat 1 "$interval"
part "$limit" mpstat -P ALL 1 "$seconds"
part "$limit" pidstat -ud 1 "$seconds"
part "$limit" top -b -d 1 -n 2
# Counters since boot, twice, each time behind the time.
counters="/proc/uptime /proc/stat /proc/vmstat /proc/diskstats /proc/net/snmp /proc/net/netstat"
part "$limit" sh -c "for turn in 1 2; do grep -H . $counters; [ \$turn = 2 ] || sleep $seconds; done"
part 5 grep -H . /proc/net/sockstat /proc/sys/fs/file-nr /proc/sys/kernel/random/entropy_avail \
    /proc/sys/kernel/random/poolsize /proc/sys/net/core/somaxconn /proc/sys/net/ipv4/ip_local_port_range \
    /proc/sys/net/netfilter/nf_conntrack_count /proc/sys/net/netfilter/nf_conntrack_max \
    /proc/sys/kernel/pid_max /proc/sys/kernel/threads-max
part 10 ss -tanpio
part 10 ss -xlp
# A series tells a pile-up from an instant, and a load that grows from one that fades.
part "$limit" sh -c 'turn=0; while [ "$turn" -lt 3 ]; do cat /proc/loadavg; date; ps -eLo pid,ppid,tid,stat,tty,wchan:32,comm 2>/dev/null || ps -o pid,ppid,stat,comm; sleep 1; turn=$((turn + 1)); done'

# What the tasks in state D wait for: some of them, in the kernel's words. A name may have blanks and brackets in it, so
# the state is behind the last one. All in one part, with the files' names, so that each is known to be of whom.
found=0
blocked=
for stat in /proc/[0-9]*/task/[0-9]*/stat; do
    [ "$found" -lt 20 ] || break
    read -r text 2>/dev/null <"$stat" || continue
    case ${text##*) } in
    D*)
        found=$((found + 1))
        task=${stat%/stat}
        blocked="$blocked $task/status $task/wchan $task/stack $task/syscall"
        ;;
    esac
done
# The names of these files have no blanks.
# shellcheck disable=SC2086
[ -z "$blocked" ] || part 5 grep -H . $blocked

part 10 dmesg
part 30 journalctl --boot --no-pager --output=short-monotonic --lines="$lines"
part 10 systemd-analyze time
part 10 systemd-analyze blame --no-pager
part 10 systemd-analyze critical-chain --no-pager

if [ -n "${JVMS:-}" ] && has jcmd; then
    for pid in $(limited 10 jcmd -l 2>/dev/null | while read -r pid name; do
        case $name in *JCmd*) ;; *) echo "$pid" ;; esac
    done); do
        # A series tells a wait from an instant.
        for turn in 1 2 3; do
            part 15 jcmd "$pid" Thread.print
            [ "$turn" = 3 ] || sleep 1
        done
    done
fi
