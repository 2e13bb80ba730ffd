#!/bin/bash
cd "$(dirname "$0")"
python3 -B rates_provider.py &
while [ ! -s "$RUN/rates.port" ]; do sleep 0.1; done
export RATES_URL=http://127.0.0.1:$(cat "$RUN/rates.port")
python3 -B gateway.py &
echo $! > "$RUN/pid"
while [ ! -s "$RUN/port" ]; do sleep 0.1; done
python3 -B shop_client.py &
sleep 2.5
echo READY
wait
