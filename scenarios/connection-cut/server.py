"""Answers on port 5000 of its own network namespace. With the argument `cut`, the way to it is cut after the first
question has come and before its answer goes out: the second question is lost, and so is each repetition of it."""

import os
import socket
import subprocess
import sys

server = socket.create_server(("0.0.0.0", 5000))
os.write(3, b"ready\n")
os.close(3)
client, _ = server.accept()
client.recv(100)
if sys.argv[1] == "cut":
    # The asking side now sends to an Ethernet address that nobody has.
    inside = ["nsenter", f"--net=/proc/{os.getppid()}/ns/net"]
    there = ["192.0.2.2", "lladdr", "02:00:00:00:00:99", "dev", "near"]
    subprocess.run([*inside, "ip", "neighbour", "replace", *there], check=True)
client.sendall(b"answer\n")
client.recv(100)
client.sendall(b"answer\n")
client.recv(100)
