#!/bin/bash
. "$STAGE"
P=$(port); chmod 755 "$RUN"; mkdir my; chown mysql my
mariadb-install-db --user=mysql --datadir="$RUN/my" >install.log 2>&1
mariadbd --no-defaults --user=mysql --datadir="$RUN/my" --port="$P" --bind-address=127.0.0.1 --socket="$RUN/my/my.sock" >my.log 2>&1 &
up "$P" || exit 1
there "$RUN/my/my.sock" || exit 1
sql() { mariadb -N -S "$RUN/my/my.sock" -e "$1"; }
sql "create user job@'127.0.0.1' identified by 'job'" || exit 1
as_job() { mariadb -N -h 127.0.0.1 -P "$P" -u job -pjob -e "$1"; }
as_job "select get_lock('nightly_import', 60); select sleep(600)" >nightly.log 2>&1 &
sleep 1
mariadb -N -h 127.0.0.1 -P "$P" -u job -pjob -e "select get_lock('nightly_import', 600)" >hourly.log 2>&1 &
asked=$!
sleep 2
ready "$asked"
