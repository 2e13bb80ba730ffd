# pgbouncer has two connections to PostgreSQL. Two clients have begun a transaction each and think; three others ask for something and
# wait for one of those connections. Of the twin those two have ended their transactions, and the others are answered.
setup() {
    local client end=
    if [ "$1" = healthy ]; then end='commit;'; fi
    start_postgres "$STAGE/data"
    start_pooler 2
    for client in holds keeps one two three; do
        session "$client"
        echo 'select 1;' >&"${!client}"
        until grep -q '1 row' "$STAGE/$client.log"; do sleep 0.02; done
    done
    for client in holds keeps; do
        echo "begin; select 2; $end" >&"${!client}"
        until [ "$(grep -c '1 row' "$STAGE/$client.log")" = 2 ]; do sleep 0.02; done
    done
    for client in one two three; do
        echo 'select 3;' >&"${!client}"
        if [ "$1" = healthy ]; then until [ "$(grep -c '1 row' "$STAGE/$client.log")" = 2 ]; do sleep 0.02; done; fi
    done
    if [ "$1" = stall ]; then until [ "$(waiting)" = 3 ]; do sleep 0.05; done; fi
}
# How many clients wait for a connection of the pool, as it says itself.
waiting() {
    "$pg_bin/psql" --no-psqlrc --port 6432 --tuples-only --no-align --command 'show pools' pgbouncer | awk -F'|' '$1 == "postgres" { print $4 }'
}
# A client that does what is written to the descriptor in the variable of its name.
session() {
    local -n to=$1
    mkfifo "$STAGE/$1"
    "$pg_bin/psql" --no-psqlrc --port 6432 <"$STAGE/$1" >"$STAGE/$1.log" 2>&1 &
    helpers+=("$!")
    exec {to}>"$STAGE/$1"
}
stall() {
    attach --pid "$pooler" --duration 2
    truth '"waited_ns": 1, "elapsed_ns": 1'
}
healthy() {
    attach --pid "$pooler" --duration 2
    truth '"waited_ns": 0, "elapsed_ns": 1'
}
