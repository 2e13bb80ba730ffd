#!/bin/bash
. "$STAGE"
cd "$HERE" || exit 1
python3 -B supplierapi.py >"$RUN/supplierapi.log" 2>&1 &
there "$RUN/supplier.port" || exit 1
SUPPLIER_URL="http://127.0.0.1:$(cat "$RUN/supplier.port")" "$BUILT/supplierfeed" >"$RUN/supplierfeed.log" 2>&1 &
asked=$!
sleep 5
ready "$asked"
