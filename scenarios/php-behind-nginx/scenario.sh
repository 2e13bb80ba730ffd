# Two clients ask nginx for a page of php-fpm, again and again. Its script fetches a page from a program that takes 300 ms for
# its answer. Of the twin that one answers at once, and the clients pause for 500 ms.
setup() {
    local client delay=0.3 pause=0
    if [ "$1" = healthy ]; then delay=0 pause=0.5; fi
    # So that a page takes what its programs take, whatever else the machine does.
    precedence
    helper python3 "$here/backend.py" 8081 "$delay"
    backend=$helper_pid
    mkdir "$STAGE/www"
    cp "$scenario/page.php" "$STAGE/www/page.php"
    start_php <<END
pm = static
pm.max_children = 2
END
    start_nginx 1 <<END
server {
    listen 127.0.0.1:8080;
    location / {
        include /etc/nginx/fastcgi_params;
        fastcgi_param SCRIPT_FILENAME $STAGE/www/page.php;
        fastcgi_pass unix:$STAGE/php/socket;
    }
}
END
    for client in 1 2; do
        helper python3 "$scenario/client.py" 8080 "$pause"
    done
    processes=$nginx,$(pgrep --parent "$nginx" --delimiter ,),$php,$(pgrep --parent "$php" --delimiter ,)
}
stall() {
    attach --pid "$processes" --duration 2
    # Of the five processes the two that run the script wait all the time.
    truth "\"waited_ns\": 2, \"elapsed_ns\": 5, \"holder_pid\": $backend"
}
healthy() {
    attach --pid "$processes" --duration 2
    truth '"waited_ns": 0, "elapsed_ns": 1'
}
