# The twin's other connection has another database.
setup() {
    local other=table.db
    if [ "$1" = healthy ]; then other=other.db; fi
    sqlite3 "$STAGE/table.db" 'create table entry(x)'
    sqlite3 "$STAGE/other.db" 'create table entry(x)'
    helper python3 "$scenario/transaction.py" "$STAGE/$other" "$STAGE/go"
}
stall() { observe "${gated[@]}" "${timed[@]}" sqlite3 -cmd '.timeout 30000' "$STAGE/table.db" \
    'pragma synchronous=off; insert into entry values(1)' >"$STAGE/said"; }
healthy() { stall; }
