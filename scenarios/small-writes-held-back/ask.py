"""Asks 25 questions, each in two pieces; with the argument `gathered` in one."""

import socket
import sys

server = socket.create_connection(("127.0.0.1", 9000))
for _ in range(25):
    if sys.argv[1] == "gathered":
        server.send(b"h" * 100 + b"b" * 100)
    else:
        server.send(b"h" * 100)
        server.send(b"b" * 100)
    server.recv(100)
