# What the scripts of incidents share. In: $RUN, a fresh directory. Out: functions, and that all that was started ends with the script.
# shellcheck shell=bash
set -u
cd "${RUN:?is the directory to work in}" || exit 1
# Where Debian has its daemons, and one language for what they print.
export PATH=/usr/sbin:/sbin:/usr/local/sbin:$PATH LC_ALL=C.UTF-8

# Commands that undo what does not end with a process, such as a mount.
UNDO=()
finish() {
    trap '' TERM INT HUP
    trap - EXIT
    if ((${#UNDO[@]})); then
        # From a session of its own: this process group is about to be ended. Twice, because a mount may be in use the first time.
        printf '%s\n' 'sleep 0.25' "${UNDO[@]}" 'sleep 0.8' "${UNDO[@]}" | setsid bash >/dev/null 2>&1 &
        disown
        sleep 0.05
    fi
    # What is stopped would not end.
    kill -CONT 0 2>/dev/null
    for job in $(jobs -p); do kill -TERM "$job" 2>/dev/null; done
    kill -TERM 0 2>/dev/null
    sleep 0.2
    for job in $(jobs -p); do kill -KILL "$job" 2>/dev/null; done
}
trap finish EXIT
trap 'exit 0' TERM INT HUP

# port: a free port of 127.0.0.1.
port() {
    /usr/bin/python3 -c 'import random, socket
while True:
    number = random.randint(20100, 32000)
    with socket.socket() as probe:
        try: probe.bind(("127.0.0.1", number))
        except OSError: continue
    print(number)
    break'
}
# up PORT: waits until somebody listens there.
up() {
    for _ in $(seq 150); do
        (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null && return 0
        sleep 0.1
    done
    echo "port $1 not up" >&2
    return 1
}
# ready PID: the trouble goes on, and PID is whom one would ask about.
ready() {
    echo "$1" >"$RUN/pid"
    echo READY
    while :; do
        wait
        sleep 1
    done
}
