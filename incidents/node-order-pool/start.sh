#!/bin/bash
. "$STAGE"
cd "$HERE" || exit 1
NODE_PATH="$BUILT/node_modules" node ledgerdb.js &
there "$RUN/ledgerdb.sock" || exit 1
NODE_PATH="$BUILT/node_modules" node orders.js &
asked=$!
there "$RUN/orders.sock" || exit 1
node webshop.js &
sleep 4
ready "$asked"
