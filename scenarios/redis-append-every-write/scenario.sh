# Eight clients set keys, with a pause of 2 ms after each answer; each write of Redis's log has to be safe on a disk with a
# limit. The twin has the same disk and clients, and keeps no log.
setup() {
    local append=yes client
    if [ "$1" = healthy ]; then append=no; fi
    loop_disk
    throttle write_iops 50
    start_redis "$STAGE/mnt/redis" --appendonly "$append" --appendfsync always
    echo $$ >"$home/cgroup.procs"
    for client in {1..8}; do
        redis-cli -p "$redis_port" -r -1 -i 0.002 set "key$client" value >"$STAGE/client$client.log" 2>&1 &
        helpers+=("$!")
    done
    until [ "$(redis-cli -p "$redis_port" dbsize)" = 8 ]; do :; done
}
stall() {
    attach --pid "$redis" --duration 2
    # One of the eight is always waiting for its answer, so that Redis is never at rest.
    truth '"waited_ns": 1, "elapsed_ns": 1'
}
healthy() {
    attach --pid "$redis" --duration 2
    truth '"waited_ns": 0, "elapsed_ns": 1'
}
