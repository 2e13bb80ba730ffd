"""Answers each question once it has had the lock."""

import fcntl
import socket
import sys
import threading


def serve(client):
    with open(sys.argv[1], "w") as lock:
        while client.recv(100):
            fcntl.flock(lock, fcntl.LOCK_EX)
            fcntl.flock(lock, fcntl.LOCK_UN)
            client.sendall(b"row\n")


listener = socket.create_server(("10.0.4.17", 5432))
while True:
    client, _ = listener.accept()
    threading.Thread(target=serve, args=(client,), daemon=True).start()
