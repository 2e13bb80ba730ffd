"""Answers each request of 200 bytes on 127.0.0.1:9000 at once."""

import os
import socket

server = socket.create_server(("127.0.0.1", 9000))
os.write(3, b"ready\n")
os.close(3)
client, _ = server.accept()
client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
while True:
    request = b""
    while len(request) < 200:
        part = client.recv(200 - len(request))
        if not part:
            raise SystemExit
        request += part
    client.sendall(b"answer")
