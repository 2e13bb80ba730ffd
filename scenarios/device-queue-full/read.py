"""Takes one client on 127.0.0.1:9000 and reads all that it sends."""

import os
import socket

server = socket.create_server(("127.0.0.1", 9000))
os.write(3, b"ready\n")
os.close(3)
client, _ = server.accept()
while client.recv(1 << 20):
    pass
