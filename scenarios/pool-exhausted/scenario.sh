# pgbouncer has one connection to PostgreSQL. A client has begun a transaction and thinks; three others ask for something and
# wait for that connection. Of the twin the first has ended its transaction, and the others are answered.
setup() {
    local end= client
    if [ "$1" = healthy ]; then end='commit;'; fi
    start_postgres "$STAGE/data"
    start_pooler 1
    for client in holds one two three; do
        session "$client"
        echo 'select 1;' >&"${!client}"
        until grep -q '1 row' "$STAGE/$client.log"; do sleep 0.02; done
    done
    echo "begin; select 2; $end" >&"$holds"
    until [ "$(grep -c '1 row' "$STAGE/holds.log")" = 2 ]; do sleep 0.02; done
    for client in one two three; do
        # Again and again, with a pause.
        echo 'select 3 \watch 0.3' >&"${!client}"
        if [ "$1" = healthy ]; then until [ "$(grep -c '1 row' "$STAGE/$client.log")" -ge 2 ]; do sleep 0.02; done; fi
    done
    if [ "$1" = stall ]; then until [ "$(waiting)" = 3 ]; do sleep 0.05; done; fi
    asking=$(IFS=,; echo "${sessions[*]:1}")
}
# How many clients wait for a connection of the pool, as it says itself.
waiting() {
    "$pg_bin/psql" --no-psqlrc --port 6432 --tuples-only --no-align --command 'show pools' pgbouncer | awk -F'|' '$1 == "postgres" { print $4 }'
}
# A client that does what is written to the descriptor in the variable of its name.
sessions=()
session() {
    local -n to=$1
    mkfifo "$STAGE/$1"
    "$pg_bin/psql" --no-psqlrc --port 6432 <"$STAGE/$1" >"$STAGE/$1.log" 2>&1 &
    helpers+=("$!")
    sessions+=("$!")
    exec {to}>"$STAGE/$1"
}
stall() {
    attach --pid "$asking" --duration 1
    truth "\"waited_ns\": 1, \"elapsed_ns\": 1, \"holder_pid\": $pooler"
}
healthy() { look_at "$asking" 0; }
