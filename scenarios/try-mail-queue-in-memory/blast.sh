#!/bin/bash
# A blast of mail: starts Postfix with the configuration in $1, and hands it $2 messages in twenty sessions. Postfix is left running.
/usr/lib/postfix/sbin/master -c "$1" -d >"$1/out" 2>&1 &
until (: <>/dev/tcp/127.0.0.1/2525) 2>>"$1/out"; do sleep 0.02; done
exec smtp-source -s 20 -m "$2" -l 4000 -f boss@mail.example -t staff@mail.example 127.0.0.1:2525
