# By hand the wait is taken away as SQLite itself can: PRAGMA synchronous=OFF. The part that is no wait for the disk is a sleep, so
# that a busy machine changes little. The twin has the same disk without the limit, and nothing is tried on it.
rows() {
    echo "$1"
    echo 'CREATE TABLE IF NOT EXISTS visits (id INTEGER PRIMARY KEY, page TEXT);'
    for row in $(seq 10); do echo "INSERT INTO visits (page) VALUES ('/page/$row');"; done
    echo "$2"
}
setup() {
    loop_disk
    if [ "$1" = stall ]; then throttle write_iops 100; fi
    rows '' '.shell sleep 0.1' >"$STAGE/rows.sql"
    rows 'PRAGMA synchronous=OFF;' '.shell sleep 0.1' >"$STAGE/rows-without.sql"
    rows '' '' >"$STAGE/rows-only.sql"
}
as_it_is() { sqlite3 "$STAGE/mnt/visits.db" <"$STAGE/rows.sql"; }
by_hand() { sqlite3 "$STAGE/mnt/visits.db" <"$STAGE/rows-without.sql" >/dev/null; }
stall() {
    come_first
    save_by_hand
    experiment disk.sync --runs 3 -- sqlite3 "$STAGE/mnt/visits.db" <"$STAGE/rows.sql"
}
healthy() { observe "${timed[@]}" sqlite3 "$STAGE/mnt/visits.db" <"$STAGE/rows-only.sql"; }
