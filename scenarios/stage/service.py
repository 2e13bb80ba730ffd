"""A service and its clients: service.py PORT CLIENTS KIND [WORD].

It answers one client after the other, and does one thing for each of them: `read` a file, `commit` a line to a file, `resolve` a name, or
`compute` for so many milliseconds of CPU time. The clients ask again and again. Says "ready" on descriptor 3.
"""

import os
import signal
import socket
import sys
import time

PAUSE_SECONDS = 0.02


def read(path: str) -> None:
    """Reads a file."""
    with open(path, "rb") as file:
        file.read(100)


def commit(path: str) -> None:
    """Has a line safe on disk."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(file, b"a line of a journal\n")
    os.fsync(file)
    os.close(file)


def resolve(name: str) -> None:
    """Looks up a name."""
    try:
        socket.getaddrinfo(name, 80)
    except OSError:
        pass


def compute(milliseconds: str) -> None:
    """Uses so much CPU time."""
    end = time.thread_time() + int(milliseconds) / 1000
    while time.thread_time() < end:
        pass


def ask(port: int) -> None:
    """Asks, again and again."""
    while True:
        with socket.create_connection(("127.0.0.1", port)) as server:
            server.sendall(b"ask")
            server.recv(10)
        time.sleep(PAUSE_SECONDS)


KINDS = {"read": read, "commit": commit, "resolve": resolve, "compute": compute}

port, clients, kind, word = int(sys.argv[1]), int(sys.argv[2]), KINDS[sys.argv[3]], sys.argv[4]
server = socket.create_server(("127.0.0.1", port))
children: list[int] = []


def end(*_: object) -> None:
    """Ends its clients, and itself."""
    for child in children:
        os.kill(child, signal.SIGKILL)
    os._exit(0)


for _ in range(clients):
    child = os.fork()
    if child == 0:
        server.close()
        ask(port)
    children.append(child)
signal.signal(signal.SIGTERM, end)
os.write(3, b"ready\n")
os.close(3)
while True:
    client, _ = server.accept()
    with client:
        client.recv(100)
        kind(word)
        client.sendall(b"ok")
