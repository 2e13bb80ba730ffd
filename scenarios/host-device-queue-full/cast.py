"""Sends without a pause."""

import socket

sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sender.connect(("192.0.2.2", 6000))
while True:
    sender.send(b"x" * 1400)
