# In the twin the cgroup may use two CPUs, and two threads collect. It is asked less often: on a slow machine one collection takes
# 65 ms, and each half second that would be a trouble of its own.
setup() {
    compile_java
    local threads=8 rest=0.5
    if [ "$1" = stall ]; then
        quota 15000
    else
        quota 200000
        threads=2
        rest=2
    fi
    helper "${limited[@]}" "${java[@]}" -XX:+UseParallelGC "-XX:ParallelGCThreads=$threads" -Xms200m -Xmx200m Server
    server=$helper_pid
    python3 "$scenario/client.py" 8090 "$STAGE/requests" "$rest" &
    helpers+=("$!")
    until [ -s "$STAGE/requests" ]; do sleep 0.05; done
}
stall() {
    coproc account { python3 "$scenario/account.py" "$server" "$STAGE/requests" >>"$HOLDUP_TRUTH"; }
    attach --pid "$server" --duration 4
    # shellcheck disable=SC2154 # coproc sets it
    local pid=$account_PID
    echo >&"${account[1]}"
    wait "$pid"
}
healthy() { stall; }
