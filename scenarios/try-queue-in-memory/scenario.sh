# By hand the folder is on a tmpfs. The part that is no wait for the disk is a sleep, so that a busy machine changes little. The
# twin has the same disk without the limit, and nothing is tried on it. Runs without must leave the folder as it is: the rows of runs
# as it is are all that is there afterwards.
setup() {
    loop_disk
    if [ "$1" = stall ]; then throttle write_iops 100; fi
    mkdir "$STAGE/mnt/queue" "$STAGE/ram/queue"
    {
        echo 'CREATE TABLE IF NOT EXISTS visits (id INTEGER PRIMARY KEY, page TEXT);'
        for row in $(seq 10); do echo "INSERT INTO visits (page) VALUES ('/page/$row');"; done
    } >"$STAGE/rows-only.sql"
    { cat "$STAGE/rows-only.sql"; echo '.shell sleep 0.1'; } >"$STAGE/rows.sql"
}
as_it_is() { sqlite3 "$STAGE/mnt/queue/visits.db" <"$STAGE/rows.sql"; }
by_hand() { sqlite3 "$STAGE/ram/queue/visits.db" <"$STAGE/rows.sql"; }
rows() { sqlite3 "$STAGE/mnt/queue/visits.db" 'SELECT count(*) FROM visits'; }
stall() {
    come_first
    save_by_hand
    local before after
    before=$(rows)
    experiment disk --memory "$STAGE/mnt/queue" --runs 3 -- sqlite3 "$STAGE/mnt/queue/visits.db" <"$STAGE/rows.sql"
    after=$(rows)
    if [ -n "${HOLDUP-}" ] && [ $((after - before)) != 30 ]; then
        echo "three runs as it is write 30 rows and three without none, and there are $((after - before)) more" >&2
        return 1
    fi
}
healthy() { observe "${timed[@]}" sqlite3 "$STAGE/mnt/queue/visits.db" <"$STAGE/rows-only.sql"; }
