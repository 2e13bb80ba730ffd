#!/bin/bash
cd "$(dirname "$0")"
mkdir -p "$RUN/sessions"
export PORT=$(python3 -B -c 'import socket; s=socket.socket(); s.bind(("127.0.0.1",0)); print(s.getsockname()[1])')
PHP_CLI_SERVER_WORKERS=3 php -S 127.0.0.1:$PORT -t public public/index.php >"$RUN/php.log" 2>&1 &
python3 -B browser.py &
while [ ! -s "$RUN/pid" ]; do sleep 0.1; done
sleep 1
echo READY
wait
