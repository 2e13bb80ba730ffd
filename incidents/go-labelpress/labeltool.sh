#!/bin/bash
# labeltool PARCEL
cat >/dev/null
if [[ $1 == P0006 ]]; then
    bash -c 'exec -a fontcached sleep 900' &
fi
printf '%%!PS %s\n' "$1"
exit 0
