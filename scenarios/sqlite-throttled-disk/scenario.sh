# The twin has the same disk without the limit.
setup() {
    loop_disk
    echo 'CREATE TABLE visits (id INTEGER PRIMARY KEY, page TEXT);' >"$STAGE/rows.sql"
    for row in $(seq 25); do
        echo "INSERT INTO visits VALUES ($row, '/page/$row');" >>"$STAGE/rows.sql"
    done
    if [ "$1" = stall ]; then throttle write_iops 100; fi
}
stall() { observe "${timed[@]}" sqlite3 "$STAGE/mnt/visits.db" <"$STAGE/rows.sql"; }
healthy() { stall; }
