"""Listens on a Unix socket with room for one client in the queue, fills the queue itself, and accepts a second after
the gate has opened; with the argument `at-once` it accepts from the beginning."""

import os
import socket
import sys
import time

path = os.environ["STAGE"] + "/server.sock"
server = socket.socket(socket.AF_UNIX)
server.bind(path)
server.listen(0)
if sys.argv[1] == "late":
    first = socket.socket(socket.AF_UNIX)
    first.connect(path)
os.write(3, b"ready\n")
os.close(3)
if sys.argv[1] == "late":
    with open(os.environ["STAGE"] + "/go", encoding="ascii") as gate:
        gate.readline()
    time.sleep(1)
while True:
    server.accept()
