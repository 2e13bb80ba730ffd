#!/bin/bash
# Three hosts as network namespaces on one bridge, each recorded into one store: nginx, an application behind it, a database behind that, and
# on the database's host a backup that has a lock most of the time. Run in mount and network namespaces of its own.
#
# stage.sh SCRIPTS DIRECTORY HOLDUP
set -eu
scripts=$1 place=$2 holdup=$3
cgroups=$(findmnt --types cgroup2 --noheadings --output TARGET | head -n 1)
own=$cgroups/holdup-three-hosts-$$
running=()

end() {
    kill "${running[@]}" 2>/dev/null || true
    wait || true
    rmdir "$own"/* "$own" 2>/dev/null || true
}
trap end EXIT

# Names of network namespaces are files: of this stage alone.
mkdir -p /run/netns
mount -t tmpfs none /run/netns
mkdir "$own"
ip link add between type bridge
ip link set between up
ip address add 10.0.9.9/16 dev between

host() { # NAME ADDRESS
    ip netns add "$1"
    ip link add "to-$1" type veth peer name eth0 netns "$1"
    ip link set "to-$1" master between up
    ip -n "$1" address add "$2/16" dev eth0
    ip -n "$1" link set eth0 up
    mkdir "$own/$1"
}

on() { # NAME COMMAND...
    bash -c 'echo $$ >"$1/cgroup.procs"; name=$2; shift 2; exec ip netns exec "$name" "$@"' - "$own/$1" "$@" &
    running+=($!)
}

listens() { # NAME PORT
    for _ in $(seq 100); do
        if [ -n "$(ip netns exec "$1" ss --no-header --tcp --listening --numeric "sport = :$2")" ]; then return; fi
        sleep 0.05
    done
    echo "nobody listens on port $2 of $1" >&2
    exit 1
}

# A recorder of one host: with a name and a machine ID of its own.
record() { # NAME
    printf '%s' "$1" | md5sum | cut -c 1-32 >"$place/machine-$1"
    unshare --uts --mount bash -c 'hostname "$1"; mount --bind "$2/machine-$1" /etc/machine-id
        exec "$3" record --every 5s --cgroup "$4" --dir "$2/recorded-$1" --to "file://$2/store"' \
        - "$1" "$place" "$holdup" "$own/$1" 2>"$place/said-$1" &
    recorders+=($!)
    running+=($!)
}

host web-1 10.0.1.5
host app-1 10.0.2.8
host db-3 10.0.4.17
sed "s#PLACE#$place#g" "$scripts/nginx.conf" >"$place/nginx.conf"
on db-3 python3 "$scripts/backup.py" "$place/lock"
on db-3 python3 "$scripts/database.py" "$place/lock"
listens db-3 5432
on app-1 python3 "$scripts/application.py"
listens app-1 8080
on web-1 nginx -c "$place/nginx.conf"
listens web-1 80
for _ in 1 2 3; do
    python3 "$scripts/client.py" &
    running+=($!)
done
mkdir -p "$place/store"
recorders=()
for name in web-1 app-1 db-3; do record "$name"; done
sleep 14
kill -TERM "${recorders[@]}"
wait "${recorders[@]}"
