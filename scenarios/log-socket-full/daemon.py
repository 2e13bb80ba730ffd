"""A log daemon that begins to read a second after the GATE has opened, or at once: stall|healthy SOCKET GATE."""

import os
import socket
import sys
import time

mode, path, gate = sys.argv[1:]
log = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
log.bind(path)
os.write(3, b"ready\n")
os.close(3)
with open(gate) as opened:
    opened.readline()
if mode == "stall":
    time.sleep(1.0)
while True:
    log.recv(65536)
