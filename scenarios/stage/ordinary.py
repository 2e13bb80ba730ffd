"""Light services and their clients, as a machine has them beside whatever is looked for: ordinary.py PORT.

A server is asked by two clients; another one is asked for news, which come every second and a half, so that whoever asks waits; a worker waits
for a pipe into which something is written now and then; a program sleeps. Says "ready" on descriptor 3. Nothing of it waits for the rest of
the machine.
"""

import os
import select
import signal
import socket
import sys
import time

PAUSE_SECONDS = 0.05
NEWS_SECONDS = 1.5


def serve(server: socket.socket) -> None:
    """Answers each client once, at once."""
    while True:
        client, _ = server.accept()
        with client:
            client.recv(100)
            client.sendall(b"ok")


def news(server: socket.socket) -> None:
    """Keeps its clients, and tells all of them now and then."""
    clients: list[socket.socket] = []
    while True:
        ready, _, _ = select.select([server], [], [], NEWS_SECONDS)
        if ready:
            clients.append(server.accept()[0])
            continue
        for client in clients:
            client.sendall(b"news")


def ask(port: int) -> None:
    """Asks, again and again."""
    while True:
        with socket.create_connection(("127.0.0.1", port)) as server:
            server.sendall(b"ask")
            server.recv(10)
        time.sleep(PAUSE_SECONDS)


def listen(port: int) -> None:
    """Asks for news once, and waits for them."""
    with socket.create_connection(("127.0.0.1", port)) as server:
        server.sendall(b"subscribe")
        while server.recv(10):
            pass


def produce(pipe: int) -> None:
    """Writes a job now and then."""
    while True:
        os.write(pipe, b"job")
        time.sleep(NEWS_SECONDS)


def work(pipe: int) -> None:
    """Waits for jobs."""
    while os.read(pipe, 3):
        pass


children: list[int] = []


def end(*_: object) -> None:
    """Ends all of it."""
    for child in children:
        os.kill(child, signal.SIGKILL)
    os._exit(0)


def start(what, *arguments: object) -> None:
    """Does it in a process of its own."""
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        what(*arguments)
        os._exit(0)
    children.append(child)


signal.signal(signal.SIGTERM, end)


port = int(sys.argv[1])
pages = socket.create_server(("127.0.0.1", port))
topics = socket.create_server(("127.0.0.1", port + 1))
jobs, results = os.pipe()
start(serve, pages)
start(news, topics)
start(ask, port)
start(ask, port)
start(listen, port + 1)
start(work, jobs)
start(produce, results)
os.write(3, b"ready\n")
os.close(3)
while True:
    time.sleep(1)
