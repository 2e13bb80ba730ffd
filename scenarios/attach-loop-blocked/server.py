"""Answers on port 8126 from one thread with an event loop; for a report it sleeps as long as it is told to. When it is told to end it
writes how long its requests took, and how much of that was sleep."""
import json
import os
import selectors
import signal
import socket
import sys
import time

pause = float(sys.argv[1])
slept = elapsed = 0


def end(*_):
    with open(sys.argv[2], "a") as file:
        file.write(json.dumps({"waited_ns": slept, "elapsed_ns": max(elapsed, 1)}) + "\n")
    os._exit(0)


def serve(connection):
    global slept, elapsed
    request = connection.recv(4096)
    began = time.monotonic_ns()
    if not request:
        loop.unregister(connection)
        connection.close()
        return
    if pause and request.startswith(b"GET /report "):
        time.sleep(pause)
        slept += time.monotonic_ns() - began
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok\n")
    elapsed += time.monotonic_ns() - began


server = socket.create_server(("127.0.0.1", 8126), backlog=64)
loop = selectors.DefaultSelector()
loop.register(server, selectors.EVENT_READ)
signal.signal(signal.SIGTERM, end)
with open(3, "w") as ready:
    ready.write("ready\n")
while True:
    for key, _ in loop.select():
        if key.fileobj is server:
            loop.register(server.accept()[0], selectors.EVENT_READ)
        else:
            serve(key.fileobj)
