# A client has changed a row and thinks: its transaction is open. Another's update of that row waits in its session. Of the
# twin the first has committed, so that both sessions wait for their clients, and the server's other processes for their round.
setup() {
    local end=
    if [ "$1" = healthy ]; then end='commit;'; fi
    start_postgres "$STAGE/data"
    sql "create table stock (id int primary key, left_over int); insert into stock values (1, 5)"
    session first
    session second
    echo "begin; update stock set left_over = 4 where id = 1; $end" >&"$first"
    if [ "$1" = healthy ]; then
        until [ "$(sql 'select left_over from stock')" = 4 ]; do :; done
        echo 'update stock set left_over = 3 where id = 1;' >&"$second"
        until [ "$(sql 'select left_over from stock')" = 3 ]; do :; done
    else
        until_counted 1 "state = 'idle in transaction'"
        echo 'update stock set left_over = 3 where id = 1;' >&"$second"
        until_counted 1 "wait_event_type = 'Lock'"
    fi
}
# A client that does what is written to the descriptor in the variable of its name.
session() {
    local -n to=$1
    mkfifo "$STAGE/$1"
    "$pg_bin/psql" --no-psqlrc --quiet <"$STAGE/$1" >"$STAGE/$1.log" 2>&1 &
    helpers+=("$!")
    exec {to}>"$STAGE/$1"
}
until_counted() {
    until [ "$(sql "select count(*) from pg_stat_activity where $2")" = "$1" ]; do :; done
}
stall() {
    local all
    all=$(postgres_processes)
    attach --pid "$all" --duration 2
    # Of all processes the one whose statement has not been answered waits all the time.
    truth "\"waited_ns\": 1, \"elapsed_ns\": $(tr , '\n' <<<"$all" | wc -l)"
}
healthy() {
    attach --pid "$(postgres_processes)" --duration 2
    truth '"waited_ns": 0, "elapsed_ns": 1'
}
