# Writers in a cgroup with a limit on that disk. The twin's have none, are few and rest: on a busy machine twenty that do not are
# trouble of their own, since each waits for the journal's thread to get a CPU.
setup() {
    loop_disk
    if [ "$1" = healthy ]; then
        helper python3 "$here/queue.py" "$STAGE/mnt" 4 2
        return
    fi
    throttle write_iops 40
    helper python3 "$here/queue.py" "$STAGE/mnt" 20 0
    # They stay there; holdup is elsewhere.
    echo $$ >"$home/cgroup.procs"
}
stall() {
    host --duration 4
    truth '"waited_ns": 1, "elapsed_ns": 1'
}
healthy() {
    host --duration 4
    truth '"waited_ns": 0, "elapsed_ns": 1'
}
