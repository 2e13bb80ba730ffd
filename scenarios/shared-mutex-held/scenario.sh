# The twin's other process holds another lock.
setup() {
    local lock=ledger
    if [ "$1" = healthy ]; then lock=other; fi
    helper "$PROGRAMS/held" keep mutex "$STAGE/$lock" "$STAGE/go"
    truth "\"holder_pid\": $helper_pid"
    # Made by nobody, a lock is not locked.
    : >>"$STAGE/ledger"
}
stall() { observe "${gated[@]}" "$PROGRAMS/held" ask mutex "$STAGE/ledger"; }
healthy() { stall; }
