# The two variants of a shop in Java that asks its supplier over HTTPS for each request, once each, recorded: `healthy` (BEFORE) has the
# client that comes with the JDK, which starts a thread for each handshake and takes up its TLS sessions; `stall` (AFTER) has another
# client, made anew for each request, which starts none and shakes hands in full each time. All else is the same: the supplier closes
# each connection with its answer.
setup() {
    local words=(Shop)
    if [ "$1" = stall ]; then words=(OtherClient each); fi
    precedence 100
    start_shop "ssl_protocols TLSv1.2 TLSv1.3; ssl_session_cache shared:shop:1m; keepalive_timeout 0;" "${words[@]}"
    # The shop alone is what is recorded; whoever asks it and whom it asks are not.
    mkdir "$cgroup/shop"
    echo "$shop" >"$cgroup/shop/cgroup.procs"
    printf '%s\n' "$cgroup/shop" "$cgroup" >"$STAGE/cgroup"
}
recorded() {
    local recorder at=$STAGE/recorder
    "$HOLDUP" record --every 1h --cgroup "$cgroup/shop" --dir "$HOLDUP_RECORDINGS" 2>"$at" &
    recorder=$!
    helpers+=("$recorder")
    # Half of it, an instant by which it is found again, and the other half.
    sleep "$HOLDUP_HALF"
    date --rfc-3339=seconds | tr ' ' T >"$HOLDUP_RECORDINGS/when"
    sleep "$HOLDUP_HALF"
    kill -TERM "$recorder"
    wait "$recorder" || { cat "$at" >&2; return 1; }
    kill -TERM "$shop"
    wait "$shop" || true
    "$HOLDUP" show --at "$(cat "$HOLDUP_RECORDINGS/when")" --json "$HOLDUP_REPORT" --format markdown "$HOLDUP_RECORDINGS" >"$HOLDUP_RECORDINGS/shown.md"
}
stall() { recorded; }
healthy() { recorded; }
teardown() {
    local pid
    kill -KILL "$shop" 2>/dev/null
    for pid in $(cat "$cgroup/shop/cgroup.procs"); do echo "$pid" >"$home/cgroup.procs"; done
    rmdir "$cgroup/shop"
}
