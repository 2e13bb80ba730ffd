"""A server and its clients: mute.py serve PORT answer|nothing, and mute.py ask PORT, which asks once."""

import os
import socket
import sys
import time

what, port = sys.argv[1], int(sys.argv[2])
if what == "ask":
    with socket.create_connection(("127.0.0.1", port)) as server:
        server.sendall(b"ask")
        server.recv(10)
    time.sleep(1000)
listener = socket.create_server(("127.0.0.1", port), backlog=16)
os.write(3, b"ready\n")
os.close(3)
while sys.argv[3] == "nothing":
    time.sleep(1000)
while True:
    client, _ = listener.accept()
    with client:
        client.recv(10)
        client.sendall(b"answer")
