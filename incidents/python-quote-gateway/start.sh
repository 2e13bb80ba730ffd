#!/bin/bash
. "$STAGE"
cd "$HERE" || exit 1
python3 -B rates_provider.py &
there "$RUN/rates.port" || exit 1
export RATES_URL=http://127.0.0.1:$(cat "$RUN/rates.port")
python3 -B gateway.py &
asked=$!
there "$RUN/port" || exit 1
python3 -B shop_client.py &
sleep 2.5
ready "$asked"
