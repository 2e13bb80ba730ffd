# What is asked of a recording of the whole machine. Sourced by stage.sh.

# Light services that every machine has, and with which nothing is wrong: servers with clients, one that is asked for news, a worker before its
# pipe, a log that is followed, a job that comes now and then.
ordinary_services() {
    helper python3 "$here/ordinary.py" 7190
    : >"$STAGE/log"
    (
        trap 'kill $(jobs -p); exit' TERM
        tail -f "$STAGE/log" >"$STAGE/followed" &
        while echo line; do
            sleep 0.3 &
            wait $!
        done >"$STAGE/log"
    ) &
    helpers+=($!)
}

# Ends a service of the set-up and its clients, which are its children: `end_service PID`.
end_service() {
    pkill -KILL --parent "$1" || true
    kill -KILL "$1" || true
}

# Records the whole machine for so many seconds, while what the set-up has started goes on, and shows what was recorded, without a name:
# `record_machine 5`.
record_machine() {
    local recorder
    if [ -z "${HOLDUP-}" ]; then return; fi
    "$HOLDUP" record --dir "$STAGE/recording" --every 600s >&2 &
    recorder=$!
    sleep "$1"
    kill -INT "$recorder"
    wait "$recorder"
    "$HOLDUP" show "$STAGE/recording" --json "$HOLDUP_REPORT" >&2
}

# Records it for six seconds, and tells whether something holds up the service all that time: `look_at_machine 1`, or 0.
look_at_machine() {
    record_machine 6
    truth "\"waited_ns\": $1, \"elapsed_ns\": 1"
}
