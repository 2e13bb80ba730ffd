"""Sends a few bytes now and then."""

import os
import socket
import time

sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sender.connect(("192.0.2.2", 6001))
os.write(3, b"ready\n")
os.close(3)
while True:
    sender.send(b"beat")
    time.sleep(0.3)
