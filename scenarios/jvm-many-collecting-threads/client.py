"""Asks the server at PORT again and again, and rests for REST seconds in between: client.py PORT FILE REST. FILE has a line for each request: when it began and
when it was answered, by the clock that does not jump."""

import socket
import sys
import time

with open(sys.argv[2], "w") as log:
    while True:
        began = time.monotonic()
        with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as connection:
            connection.sendall(b"x")
            connection.recv(1)
        print(began, time.monotonic(), file=log, flush=True)
        time.sleep(float(sys.argv[3]))
