"""Asks twice over one connection, and waits at most two seconds for an answer."""

import socket
import sys

server = socket.create_connection(("192.0.2.2", 5000))
server.settimeout(2)
try:
    for _ in range(2):
        server.send(b"question\n")
        server.recv(100)
except TimeoutError:
    sys.exit(1)
