#!/bin/bash
cd "$(dirname "$0")"
NODE_PATH="$BUILT/node_modules" node ledgerdb.js &
while [ ! -S "$RUN/ledgerdb.sock" ]; do sleep 0.1; done
NODE_PATH="$BUILT/node_modules" node orders.js &
echo $! > "$RUN/pid"
while [ ! -S "$RUN/orders.sock" ]; do sleep 0.1; done
node webshop.js &
sleep 4
echo READY
wait
