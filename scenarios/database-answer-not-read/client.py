"""A client of PostgreSQL that asks for many rows: `client.py READS`, where READS says whether it reads them."""

import os
import socket
import struct
import sys
import time

reads = sys.argv[1] == "1"
connection = socket.create_connection(("127.0.0.1", 5432))
if not reads:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
words = struct.pack("!i", 196608) + b"user\0postgres\0database\0postgres\0\0"
connection.sendall(struct.pack("!i", len(words) + 4) + words)


def read_until_ready():
    """Reads answers until the server says that it is ready for the next question."""
    data = b""
    while True:
        while len(data) < 5 or len(data) < 1 + struct.unpack("!i", data[1:5])[0]:
            data += connection.recv(65536)
        kind, length = data[:1], struct.unpack("!i", data[1:5])[0]
        data = data[1 + length :]
        if kind == b"Z":
            return


read_until_ready()
query = b"select repeat('x', 1000) from generate_series(1, 20000)\0"
connection.sendall(b"Q" + struct.pack("!i", len(query) + 4) + query)
if reads:
    read_until_ready()
os.write(3, b"ready\n")
time.sleep(1000)
