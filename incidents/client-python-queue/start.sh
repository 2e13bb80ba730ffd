#!/bin/bash
. "$STAGE"
L=$(port); P=$(port)
python3 -B "$HERE/ledger.py" "$L" &
up "$L" || exit 1
python3 -B "$HERE/reports.py" "$P" "$L" &
up "$P" || exit 1
for _ in 1 2 3; do python3 -B "$HERE/client.py" "$P" & done
sleep 1.5
python3 -B "$HERE/client.py" "$P" &
asked=$!
sleep 2.5
ready "$asked"
