"""Asks the server again and again, PAUSE seconds after each answer: `client.py PAUSE`."""

import socket
import sys
import time

while True:
    try:
        with socket.create_connection(("127.0.0.1", 9000)) as server:
            server.sendall(b"please\n")
            server.recv(100)
    except OSError:
        # The server is gone: the scene is over.
        break
    time.sleep(float(sys.argv[1]))
