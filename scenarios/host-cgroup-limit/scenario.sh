# Nineteen processes, with room for one more and with room for many.
setup() {
    local number most=20
    if [ "$1" = healthy ]; then
        most=200
    fi
    task_cgroup "$most"
    for number in {1..19}; do
        # shellcheck disable=SC2016 # the shell in there expands them
        sh -c 'echo $$ >"$0/cgroup.procs"; exec sleep 1000' "$cgroup" &
        helpers+=($!)
    done
    until [ "$(cat "$cgroup/pids.current")" = 19 ]; do sleep 0.1; done
}
stall() {
    host --duration 1
    truth '"waited_ns": 1, "elapsed_ns": 1'
}
healthy() {
    host --duration 1
    truth '"waited_ns": 0, "elapsed_ns": 1'
}
