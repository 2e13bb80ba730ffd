#!/bin/bash
. "$STAGE"
PGB=$(ls -d /usr/lib/postgresql/*/bin | tail -1); P=$(port)
mkdir pg; chown postgres pg; chmod 700 pg; chmod 755 "$RUN"
as() { setpriv --reuid=postgres --regid=postgres --clear-groups "$@"; }
as "$PGB/initdb" -D pg -A trust -N >initdb.log 2>&1
as "$PGB/postgres" -D pg -p "$P" -k "$RUN/pg" -c listen_addresses=127.0.0.1 -c shared_buffers=16MB -c fsync=off >pg.log 2>&1 &
up "$P" || exit 1
sql() { psql -q -X -h 127.0.0.1 -p "$P" -U postgres -d postgres "$@"; }
sql -c "create table seats(id int primary key, guest text); insert into seats values (1, ''), (2, '')" || exit 1
python3 -B "$HERE/boxoffice.py" "$P" >office.log 2>&1 &
says held office.log || exit 1
sql -c "update seats set guest = 'Ada' where id = 2" &
asked=$!
sleep 2
ready "$asked"
