# syslog-ng hands on what three services log to a log server that was stopped: its output is full, and it reads no more from the services.
# Of the twin the log server reads.
setup() {
    local one
    cat >"$STAGE/syslog-ng.conf" <<CONF
@version: 3.38
options { stats-freq(0); log-fifo-size(2000); };
source in { network(ip("127.0.0.1") port(5514) transport("tcp") max-connections(10) log-iw-size(1000)); };
destination out { network("127.0.0.1" port(5140) transport("tcp")); };
log { source(in); destination(out); flags(flow-control); };
CONF
    python3 "$scenario/receiver.py" 5140 >"$STAGE/receiver.log" &
    receiver=$!
    helpers+=("$receiver")
    until ss -Hltn 'sport = :5140' | grep -q .; do sleep 0.02; done
    /usr/sbin/syslog-ng --foreground --no-caps --cfgfile "$STAGE/syslog-ng.conf" --persist-file "$STAGE/persist" --pidfile "$STAGE/pid" \
        --control "$STAGE/control" >"$STAGE/syslog-ng.log" 2>&1 &
    forwarder=$!
    helpers+=("$forwarder")
    until grep -q accepted "$STAGE/receiver.log"; do sleep 0.02; done
    if [ "$1" = stall ]; then kill -STOP "$receiver"; fi
    for one in 1 2 3; do
        python3 "$scenario/sender.py" 5514 >"$STAGE/sender$one.log" &
        helpers+=("$!")
    done
    local word=sent
    if [ "$1" = stall ]; then word=full; fi
    for one in 1 2 3; do
        until grep -q "$word" "$STAGE/sender$one.log"; do sleep 0.05; done
    done
}
stall() {
    attach --pid "$forwarder" --duration 2
    truth '"waited_ns": 1, "elapsed_ns": 1'
}
healthy() {
    attach --pid "$forwarder" --duration 2
    truth '"waited_ns": 0, "elapsed_ns": 1'
}
# Who is stopped does not end, and syslog-ng ends once it has sent what it has.
teardown() {
    kill -CONT "$receiver"
    kill -KILL "$forwarder"
}
