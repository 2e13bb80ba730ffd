# A service reads a file of a FUSE file system for each of its clients, and nobody answers for it: its daemon takes a minute. What that waits
# for is its own affair. In the twin it answers at once.
setup() {
    local delay_ms=0
    if [ "$1" = stall ]; then delay_ms=60000; fi
    mkdir "$STAGE/mnt"
    echo page >"$STAGE/page"
    ordinary_services
    helper "$PROGRAMS/slowfs" "$STAGE/mnt" "$STAGE/page" "$delay_ms"
    helper python3 "$here/service.py" 7101 2 read "$STAGE/mnt/data"
    service=$helper_pid
}
stall() { look_at_machine 1; }
healthy() { look_at_machine 0; }
teardown() {
    # Killed, it still waits for its daemon, which is ended next.
    end_service "$service"
}
