#!/bin/bash
. "$STAGE"
cd "$HERE" || exit 1
export EDGEAUTH_KEY=n0t-a-real-key
exec 3> >(exec python3 -B logshipper.py 3>&- >"$RUN/logshipper.log" 2>&1); ship=$!
"$BUILT/edgeauth" >&3 3>&- 2>"$RUN/edgeauth.log" &
asked=$!
exec 3>&-
there "$RUN/edgeauth.sock" || exit 1
python3 -B proxy.py >"$RUN/proxy.log" 2>&1 &
sleep 6
ready "$asked"
