# A service has a line safe on disk for each of its clients. A job writes to the same disk past the page cache, as a backup does. Each
# flush is short; together they are all that the service does. In the twin the job is not there, on the same disk, which is slow for both.
setup() {
    local number
    slow_disk
    ordinary_services
    helper python3 "$here/service.py" 7101 2 commit "$STAGE/mnt/journal"
    slow_down 300
    if [ "$1" = stall ]; then
        for number in 1 2 3 4; do
            (
                trap 'kill $(jobs -p); exit' TERM
                dd if=/dev/zero of="$STAGE/mnt/backup.$number" bs=64K count=100000 seek=0 oflag=direct,dsync conv=notrunc status=none &
                wait $!
            ) &
            helpers+=($!)
        done
    fi
}
stall() { look_at_machine 1; }
healthy() { look_at_machine 0; }
