# Six clients at a server that serves one after the other, for 30 seconds each: two stand in its queue, and the others knock. The
# twin's server answers at once.
setup() {
    local client pause=30
    if [ "$1" = healthy ]; then pause=0; fi
    helper python3 "$scenario/server.py" "$pause"
    server=$helper_pid
    for client in {1..6}; do
        python3 "$scenario/client.py" 0.5 2>"$STAGE/client$client.log" &
        helpers+=("$!")
    done
    if [ "$1" = stall ]; then
        # Its queue has one more than it asked for.
        until ss -Hltn 'sport = :9000' | grep -q '^LISTEN 2 '; do sleep 0.05; done
        until [ "$(ss -Htn state syn-sent 'dport = :9000' | wc -l)" = 3 ]; do sleep 0.05; done
    fi
}
stall() { look_at "$server" 1; }
healthy() { look_at "$server" 0; }
