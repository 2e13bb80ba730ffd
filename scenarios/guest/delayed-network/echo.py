"""Answers each line of one client with itself, at once."""
import os
import socket

server = socket.create_server(("127.0.0.1", 9000))
os.write(3, b"ready\n")
os.close(3)
client, _ = server.accept()
with client:
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    while line := client.recv(64):
        client.sendall(line)
