attack() {
    local kind number=0 target
    sleep 1000 &
    target=$!
    for kind in json html markdown collapsed pprof perfetto firefox otlp prometheus; do
        as_user ln -s "$ROOTS/secret" "$MINE/link.$kind"
        as_user mkfifo "$MINE/fifo.$kind"
    done
    as_user ln -s "$ROOTS/secret" "$MINE/link.parquet"
    as_user mkfifo "$MINE/fifo.parquet"
    as_user ln -s "$ROOTS/new" "$MINE/dangling.json"
    as_user touch "$MINE/his.json"
    as_user chmod 0666 "$MINE/his.json"
    # Somebody who reads the FIFO may read the report, too.
    each() {
        number=$((number + 1))
        start "o$number" attach -p "$target" -d 1 "$@"
        running+=("o$number")
    }
    running=()
    each --json "$MINE/link.json"
    each --json "$MINE/fifo.json"
    each --json "$MINE/dangling.json"
    each --json "$MINE/his.json"
    each --html "$MINE/link.html"
    each --html "$MINE/fifo.html"
    each -o "$MINE/link.parquet"
    each -o "$MINE/fifo.parquet"
    for label in "${running[@]}"; do finish "$label"; done
    running=()
    for kind in markdown collapsed pprof perfetto firefox otlp prometheus; do
        each --export "$kind=$MINE/link.$kind"
    done
    each --export "prometheus=$MINE/fifo.prometheus"
    for label in "${running[@]}"; do finish "$label"; done
    look keep try --without timer.sleep --yes --runs 2 --keep "$MINE/link.json" -- true
    unchanged
    # A file of root's is for root, whatever stood there before.
    umask 0022
    look own attach -p "$target" -d 1 --json "$STAGE/own.json" --html "$STAGE/own.html" --export "prometheus=$STAGE/own.prom"
    for kind in json html prom; do
        if [ "$(stat -c %a "$STAGE/own.$kind")" = 600 ]; then
            held "own.$kind is for root alone"
        else
            lost "own.$kind has mode $(stat -c %a "$STAGE/own.$kind")"
        fi
    done
    if [ -s "$MINE/his.json" ] && [ "$(stat -c %u "$MINE/his.json")" = "$ATTACKER" ]; then
        lost "the report went into a file of the hostile user's"
    else
        held "no report in a file of the hostile user's"
    fi
}
