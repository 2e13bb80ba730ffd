"""A server of one thread, or who asks it: figures.py serve PORT | report PORT | ask PORT.

It answers what `ask` wants at once, and computes for each request of `report`, not always for equally long: what looks once a
second would else meet the same moment again and again. Servers say "ready" on descriptor 3.
"""

import os
import random
import selectors
import socket
import sys
import time


def compute() -> None:
    """Some tenths of a second of CPU time."""
    until = time.process_time() + random.uniform(0.3, 0.9)
    while time.process_time() < until:
        pass


def serve(port: int) -> None:
    """Answers one request after another."""
    server = socket.create_server(("127.0.0.1", port))
    waiting = selectors.DefaultSelector()
    waiting.register(server, selectors.EVENT_READ)
    os.write(3, b"ready\n")
    while True:
        for key, _ in waiting.select():
            if key.fileobj is server:
                client, _ = server.accept()
                waiting.register(client, selectors.EVENT_READ)
                continue
            request = key.fileobj.recv(100)
            if not request:
                waiting.unregister(key.fileobj)
                key.fileobj.close()
                continue
            if request == b"report":
                compute()
            key.fileobj.sendall(b"ok")


def ask(port: int, what: bytes, pause: float) -> None:
    """Asks again and again on one connection."""
    with socket.create_connection(("127.0.0.1", port)) as server:
        while True:
            server.sendall(what)
            server.recv(10)
            time.sleep(pause)


if sys.argv[1] == "serve":
    serve(int(sys.argv[2]))
elif sys.argv[1] == "report":
    ask(int(sys.argv[2]), b"report", 0)
else:
    ask(int(sys.argv[2]), b"ask", 0.01)
