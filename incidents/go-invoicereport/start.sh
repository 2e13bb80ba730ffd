#!/bin/bash
. "$STAGE"
cd "$HERE" || exit 1
python3 -B ledger_db.py >"$RUN/ledger_db.log" 2>&1 &
there "$RUN/ledger.sock" || exit 1
"$BUILT/invoicereport" >"$RUN/invoicereport.log" 2>&1 &
asked=$!
stands "$RUN/reports" 0.5 4
ready "$asked"
