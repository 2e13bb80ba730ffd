"""Connects to 127.0.0.1:8080 some time after the gate has opened: GATE DELAY."""

import os
import socket
import sys
import time

gate, delay = sys.argv[1], float(sys.argv[2])
os.write(3, b"ready\n")
os.close(3)
with open(gate) as opened:
    opened.readline()
time.sleep(delay)
socket.create_connection(("127.0.0.1", 8080)).close()
