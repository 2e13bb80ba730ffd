# The disk is slow for everybody, by no limit of a cgroup that anybody in there has. The twin has few writers, and they rest.
setup() {
    slow_disk
    if [ "$1" = healthy ]; then
        helper python3 "$here/queue.py" "$STAGE/mnt" 4 2
        return
    fi
    slow_down 40
    helper python3 "$here/queue.py" "$STAGE/mnt" 60 0
    # The average follows in a minute.
    until awk '{ exit !($1 >= 6) }' /proc/loadavg; do sleep 0.5; done
}
stall() {
    host --duration 5
    truth '"waited_ns": 1, "elapsed_ns": 1'
}
healthy() {
    host --duration 5
    truth '"waited_ns": 0, "elapsed_ns": 1'
}
