# Four clients of pgbench change rows, each change to be safe in PostgreSQL's log before it is told to be done. The log is on a
# disk with a limit. The twin does not insist on that (fsync=off), with the same disk and clients.
setup() {
    local fsync=on
    if [ "$1" = healthy ]; then fsync=off; fi
    precedence
    loop_disk
    throttle write_iops 20
    initdb_words=(--waldir "$STAGE/mnt/log" --wal-segsize 1)
    chmod 777 "$STAGE/mnt"
    # What goes to the log anyway, and what it makes of it now and then, is not what this is about.
    start_postgres "$STAGE/data" "fsync=$fsync" autovacuum=off checkpoint_timeout=1d max_wal_size=32MB min_wal_size=16MB
    "$pg_bin/pgbench" --initialize --quiet --scale 1 --init-steps=dtGvp 2>"$STAGE/pgbench.init"
    "$pg_bin/pgbench" --no-vacuum --builtin=simple-update --client 4 --rate 100 --time 60 --progress 1 2>"$STAGE/pgbench.log" &
    helpers+=("$!")
    until grep -q '^progress: 1' "$STAGE/pgbench.log"; do sleep 0.1; done
}
stall() {
    attach --pid "$(postgres_processes)" --duration 3
    # Of four sessions with a change in hand three wait for the one that writes the log.
    truth '"waited_ns": 3, "elapsed_ns": 4'
}
healthy() {
    attach --pid "$(postgres_processes)" --duration 3
    truth '"waited_ns": 0, "elapsed_ns": 1'
}
