"""A server, or who asks it: licences.py serve PORT | take PORT LOCK | ask PORT.

The server answers at once. `take` asks it while it has a file's lock, again and again; `ask` does so without. Servers say "ready" on
descriptor 3.
"""

import fcntl
import os
import socket
import sys
import time


def serve(port: int) -> None:
    """Answers each client once."""
    server = socket.create_server(("127.0.0.1", port))
    os.write(3, b"ready\n")
    while True:
        client, _ = server.accept()
        with client:
            client.recv(100)
            client.sendall(b"ok")


def ask(port: int) -> None:
    """Asks, and waits for the answer."""
    with socket.create_connection(("127.0.0.1", port)) as server:
        server.sendall(b"take")
        server.recv(10)


def take(port: int, path: str) -> None:
    """Asks under the lock of a file."""
    with open(path, "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        ask(port)


if sys.argv[1] == "serve":
    serve(int(sys.argv[2]))
while True:
    if sys.argv[1] == "take":
        take(int(sys.argv[2]), sys.argv[3])
    else:
        ask(int(sys.argv[2]))
    time.sleep(0.05)
