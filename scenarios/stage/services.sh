# Services from Debian's packages, with their data in $STAGE and on loopback only. Sourced by stage.sh.

# A directory $2 of the user that a service runs as; of an ordinary user's own service, who is nobody else.
directory_of() {
    if [ -n "${DROPPED-}" ]; then mkdir -p "$2"; else install -d -o "$1" "$2"; fi
}
as_owner=(setpriv --reuid postgres --regid postgres --clear-groups)
if [ -n "${DROPPED-}" ]; then as_owner=(); fi

# PostgreSQL in $1 (a directory that is made), its socket in $STAGE/pg, further words are settings: `fsync=off`. $postgres
# becomes its process. Use `sql`, `pgbench` and so on with the environment that this sets. $initdb_words go to initdb.
postgres=
initdb_words=()
start_postgres() {
    local data=$1 setting settings=()
    shift
    for setting in "$@"; do settings+=(-c "$setting"); done
    pg_bin=$(echo /usr/lib/postgresql/*/bin)
    chmod 711 "$STAGE"
    directory_of postgres "$data"
    directory_of postgres "$STAGE/pg"
    as_postgres "$pg_bin/initdb" --pgdata "$data" --username postgres --auth trust --no-sync "${initdb_words[@]}" >"$STAGE/initdb.log"
    # Not by a function: `kill` has to reach the server itself.
    "${as_owner[@]}" "$pg_bin/postgres" -D "$data" -c listen_addresses=127.0.0.1 -c "unix_socket_directories=$STAGE/pg" \
        -c shared_buffers=16MB "${settings[@]}" >"$STAGE/postgres.log" 2>&1 &
    postgres=$!
    helpers+=("$postgres")
    export PGHOST=127.0.0.1 PGUSER=postgres PGDATABASE=postgres
    until "$pg_bin/pg_isready" --quiet; do :; done
}

# One of PostgreSQL's programs, as the user that owns the data.
as_postgres() {
    (cd / && exec "${as_owner[@]}" "$@")
}

# The server's processes and those of its sessions, with commas between.
postgres_processes() {
    echo "$postgres,$(pgrep --parent "$postgres" --delimiter ,)"
}

# The answer to a query.
sql() {
    "$pg_bin/psql" --no-psqlrc --quiet --tuples-only --no-align --command "$1"
}

# Redis with its data in $1 and, beside that, further settings: `--appendonly yes`. $redis becomes its process, $redis_port its port.
redis=
redis_port=6399
start_redis() {
    local data=$1
    shift
    mkdir -p "$data"
    redis-server --bind 127.0.0.1 --port "$redis_port" --dir "$data" --save '' --daemonize no "$@" >"$STAGE/redis.log" 2>&1 &
    redis=$!
    helpers+=("$redis")
    until redis-cli -p "$redis_port" ping >"$STAGE/pong" 2>&1; do :; done
}

# nginx with what is read from stdin inside its http block, and $1 workers. $nginx becomes its first process.
nginx=
start_nginx() {
    mkdir -p "$STAGE/nginx"
    chmod 711 "$STAGE"
    {
        echo "user www-data; worker_processes $1; daemon off; pid $STAGE/nginx/pid; error_log $STAGE/nginx/error.log;"
        echo 'events { }'
        echo "http { access_log off; client_body_temp_path $STAGE/nginx/body; proxy_temp_path $STAGE/nginx/proxy;"
        echo "fastcgi_temp_path $STAGE/nginx/fastcgi; uwsgi_temp_path $STAGE/nginx/uwsgi; scgi_temp_path $STAGE/nginx/scgi;"
        cat
        echo '}'
    } >"$STAGE/nginx/nginx.conf"
    nginx -c "$STAGE/nginx/nginx.conf" -e "$STAGE/nginx/error.log" &
    nginx=$!
    helpers+=("$nginx")
    until pgrep --parent "$nginx" >"$STAGE/nginx/workers" && [ "$(wc -l <"$STAGE/nginx/workers")" = "$1" ]; do :; done
}

# php-fpm with the settings of its pool from stdin. $php becomes its first process.
php=
start_php() {
    mkdir -p "$STAGE/php"
    chmod 711 "$STAGE"
    {
        echo '[global]'
        echo "error_log = $STAGE/php/error.log"
        echo '[www]'
        echo 'user = www-data'
        echo "listen = $STAGE/php/socket"
        echo 'listen.owner = www-data'
        cat
    } >"$STAGE/php/fpm.conf"
    "$(echo /usr/sbin/php-fpm*)" --nodaemonize --fpm-config "$STAGE/php/fpm.conf" 2>"$STAGE/php/log" &
    php=$!
    helpers+=("$php")
    until [ -S "$STAGE/php/socket" ]; do :; done
}

# Postfix with its queue in $1 and its configuration in $STAGE/postfix. $postfix becomes its first process, $postfix_log what it tells
# about messages.
postfix=
postfix_log=
start_postfix() {
    local home=$STAGE/postfix
    configure_postfix "$1" "$home"
    postfix_log=$home/log
    /usr/lib/postfix/sbin/master -c "$home" -d >"$home/out" 2>&1 &
    postfix=$!
    helpers+=("$postfix")
    until (: <>/dev/tcp/127.0.0.1/2525) 2>>"$home/out"; do :; done
}

# A configuration of Postfix in $2, with its queue in $1, that takes mail on port 2525 and throws it away when it is delivered.
configure_postfix() {
    local queue=$1 home=$2
    mkdir -p "$queue" "$home"
    install -d -o postfix "$home/data"
    chmod 711 "$STAGE"
    cat >"$home/main.cf" <<END
compatibility_level = 3.6
queue_directory = $queue
data_directory = $home/data
maillog_file = $home/log
maillog_file_prefixes = $home
myhostname = mail.example
mydestination =
inet_interfaces = 127.0.0.1
inet_protocols = ipv4
mynetworks = 127.0.0.0/8
smtpd_peername_lookup = no
default_transport = discard:
alias_maps =
END
    cat >"$home/master.cf" <<END
2525 inet n - n - - smtpd
pickup unix n - n 60 1 pickup
cleanup unix n - n - 0 cleanup
qmgr unix n - n 300 1 qmgr
rewrite unix - - n - - trivial-rewrite
proxymap unix - - n - - proxymap
bounce unix - - n - 0 bounce
defer unix - - n - 0 bounce
discard unix - - n - - discard
anvil unix - - n - 1 anvil
postlog unix-dgram n - n - 1 postlogd
END
    postfix -c "$home" check
}

# pgbouncer in front of that PostgreSQL, on port 6432, with $1 connections to it. $pooler becomes its process.
pooler=
start_pooler() {
    local home=$STAGE/pooler
    directory_of postgres "$home"
    cat >"$home/ini" <<END
[databases]
postgres = host=127.0.0.1 port=5432 user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = 6432
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = $1
END
    "${as_owner[@]}" pgbouncer "$home/ini" >"$STAGE/pooler.log" 2>&1 &
    pooler=$!
    helpers+=("$pooler")
    until "$pg_bin/pg_isready" --quiet --port 6432; do :; done
}

# nginx with one worker that answers `ok` over TLS on port 8443, with further settings of that server: `keepalive_requests 2;`. It
# asks its clients for the certificate in $STAGE/tls/client, whose signature takes a client milliseconds of its own: how busy
# the machine is then matters little.
start_tls() {
    mkdir -p "$STAGE/tls"
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=shop -keyout "$STAGE/tls/key" \
        -out "$STAGE/tls/certificate" 2>"$STAGE/tls/log"
    openssl req -x509 -newkey rsa:4096 -nodes -days 2 -subj /CN=client -keyout "$STAGE/tls/client" -out "$STAGE/tls/own" 2>"$STAGE/tls/log"
    cat "$STAGE/tls/own" >>"$STAGE/tls/client"
    start_nginx 1 <<END
server {
    listen 127.0.0.1:8443 ssl;
    ssl_certificate $STAGE/tls/certificate;
    ssl_certificate_key $STAGE/tls/key;
    ssl_verify_client optional_no_ca;
    $1
    location / { default_type text/plain; return 200 "ok\n"; }
}
END
}

# A supplier that tells its stock at https://localhost:8443, with these further settings of nginx, and a shop in Java that asks it once for
# each request on port 8080, with a customer that always has one request there. The further words are the shop's class and its own words.
# $shop becomes its process.
shop=
start_shop() {
    local java=${JAVA_HOME:-/usr/lib/jvm/default-java} settings=$1 jars=/usr/share/java sources=("$here/shop/Shop.java" "$here/shop/TimedSockets.java")
    shift
    mkdir -p "$STAGE/tls" "$STAGE/shop"
    openssl req -x509 -newkey rsa:4096 -nodes -days 2 -subj /CN=localhost -keyout "$STAGE/tls/key" -out "$STAGE/tls/certificate" \
        2>"$STAGE/tls/log"
    start_nginx 1 <<END
server {
    listen 127.0.0.1:8443 ssl;
    ssl_certificate $STAGE/tls/certificate;
    ssl_certificate_key $STAGE/tls/key;
    $settings
    location / { default_type text/plain; return 200 "ok\n"; }
}
END
    jars=$jars/httpclient.jar:$jars/httpcore.jar:$jars/commons-logging.jar:$jars/commons-codec.jar
    if [ "$1" = OtherClient ]; then sources+=("$here/shop/OtherClient.java"); fi
    "$java/bin/javac" -nowarn -cp "$jars" -d "$STAGE/shop" "${sources[@]}"
    helper "$java/bin/java" -cp "$STAGE/shop:$jars" "$@" "$HOLDUP_TRUTH"
    shop=$helper_pid
    helper python3 "$here/shop/customer.py"
}
