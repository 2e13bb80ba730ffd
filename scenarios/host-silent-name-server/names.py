"""A name server, or who asks it: names.py serve ADDRESS | ask ADDRESS.

`ask` opens a socket for each question, and waits for at most 4 s, as resolvers do. Servers say "ready" on descriptor 3.
"""

import os
import socket
import sys
import time

QUESTION = b"\x12\x34\x01\x00\x00\x01\0\0\0\0\0\0\x07example\x03com\0\0\x01\0\x01"


def serve(address: str) -> None:
    """Answers each question with itself."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind((address, 53))
        os.write(3, b"ready\n")
        while True:
            question, client = server.recvfrom(512)
            server.sendto(question, client)


def ask(address: str) -> None:
    """Asks once."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.settimeout(4)
        server.connect((address, 53))
        server.send(QUESTION)
        try:
            server.recv(512)
        except TimeoutError:
            pass


if sys.argv[1] == "serve":
    serve(sys.argv[2])
while True:
    ask(sys.argv[2])
    time.sleep(0.05)
