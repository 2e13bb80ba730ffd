# What the scripts of incidents share. In: $RUN, a fresh directory. Out: functions, and that all that was started ends with the script.
# shellcheck shell=bash
set -u
# The incident's own folder, from anywhere.
HERE=$(dirname "$(realpath "$0")")
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
# there FILE: waits until a program has written something into it, or made a socket of that name.
there() {
    for _ in $(seq 150); do
        [[ -s $1 || -S $1 ]] && return 0
        sleep 0.1
    done
    echo "$1 is not there" >&2
    return 1
}
# says TEXT FILE: waits until a program has written it there.
says() {
    for _ in $(seq 150); do
        grep -qF -- "$1" "$2" 2>/dev/null && return 0
        sleep 0.1
    done
    echo "$2 does not say $1" >&2
    return 1
}
# stands FILE SECONDS TIMES: waits until that many looks, so many seconds apart, found in it what the look before found; 15 s at most.
stands() {
    local last='' now same=0 end=$((SECONDS + 15))
    while ((same < $3 && SECONDS < end)); do
        sleep "$2"
        now=$(cat "$1" 2>/dev/null)
        if [[ -n $now && $now == "$last" ]]; then same=$((same + 1)); else same=0; fi
        last=$now
    done
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
