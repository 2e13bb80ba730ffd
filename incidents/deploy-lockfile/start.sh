#!/bin/bash
# a deployment waits for the lock file of an earlier one, which waits for a registry
. "$STAGE"
R=$(port)
cat >registry.py <<'E'
# the image registry: takes connections and does not answer
import socket, sys
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
held = []
while True: held.append(listener.accept()[0])
E
/usr/bin/python3 registry.py "$R" & up "$R"
cat >deploy.py <<'E'
# rolls a release out, one at a time
import os, sys, time, urllib.request
def take_lock(path):
    while True:
        try:
            os.symlink(f"web1:{os.getpid()}", path)
            return
        except FileExistsError:
            time.sleep(0.5)
def fetch_image(port): return urllib.request.urlopen(f"http://127.0.0.1:{port}/image").read()
take_lock("deploy.lock")
fetch_image(sys.argv[1])
E
/usr/bin/python3 deploy.py "$R" & sleep 0.8
/usr/bin/python3 deploy.py "$R" & SECOND=$!
sleep 1.5; ready $SECOND
