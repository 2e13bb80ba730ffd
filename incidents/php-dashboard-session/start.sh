#!/bin/bash
. "$STAGE"
cd "$HERE" || exit 1
mkdir -p "$RUN/sessions"
PORT=$(port); export PORT
PHP_CLI_SERVER_WORKERS=3 php -S 127.0.0.1:$PORT -t public public/index.php >"$RUN/php.log" 2>&1 &
python3 -B browser.py &
there "$RUN/pid" || exit 1
sleep 1
ready "$(cat "$RUN/pid")"
