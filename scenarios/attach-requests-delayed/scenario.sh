# nginx lets ten requests a second through, and holds back what is more: two clients ask at once. The twin's limit is above
# what they ask, and they pause.
setup() {
    local client rate=10 pause=0
    if [ "$1" = healthy ]; then rate=10000 pause=0.1; fi
    precedence
    mkdir "$STAGE/www"
    echo page >"$STAGE/www/page"
    start_nginx 1 <<END
limit_req_zone \$binary_remote_addr zone=all:1m rate=${rate}r/s;
server {
    listen 127.0.0.1:8080;
    location / {
        limit_req zone=all burst=20;
        root $STAGE/www;
    }
}
END
    for client in 1 2; do
        helper python3 "$scenario/client.py" 8080 "$pause"
    done
    worker=$(pgrep --parent "$nginx")
}
stall() {
    attach --pid "$worker" --duration 4
    # There is always a request that is held back.
    truth '"waited_ns": 1, "elapsed_ns": 1'
}
healthy() {
    attach --pid "$worker" --duration 4
    truth '"waited_ns": 0, "elapsed_ns": 1'
}
