"""Listens where nscd does, and hangs up DELAY seconds after each question: the C library then goes on without it."""

import os
import socket
import sys
import time

server = socket.socket(socket.AF_UNIX)
server.bind("/run/nscd/socket")
server.listen()
os.write(3, b"ready\n")
os.close(3)
while True:
    client, _ = server.accept()
    client.recv(4096)
    time.sleep(float(sys.argv[1]))
    client.close()
