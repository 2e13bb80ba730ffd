# A client has asked for many rows and reads none: its session in PostgreSQL waits for room in an epoll set, beside what tells it of
# signals and of the end of the server. The twin's client reads them, and asks for nothing more.
setup() {
    local reads=0
    if [ "$1" = healthy ]; then reads=1; fi
    start_postgres "$STAGE/data"
    helper python3 "$scenario/client.py" "$reads"
    client=$helper_pid
    if [ "$1" = stall ]; then
        until [ "$(sql "select count(*) from pg_stat_activity where wait_event = 'ClientWrite'")" = 1 ]; do sleep 0.02; done
        session=$(sql "select pid from pg_stat_activity where wait_event = 'ClientWrite'")
    else
        session=$(sql "select pid from pg_stat_activity where backend_type = 'client backend' and wait_event = 'ClientRead'")
    fi
}
stall() {
    attach --pid "$session" --duration 2
    truth "\"waited_ns\": 1, \"elapsed_ns\": 1, \"holder_pid\": $client"
}
healthy() {
    attach --pid "$session" --duration 2
    truth '"waited_ns": 0, "elapsed_ns": 1'
}
