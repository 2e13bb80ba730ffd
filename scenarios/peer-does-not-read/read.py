"""Takes one client on 127.0.0.1:9000, and DELAY seconds later reads all that it sends."""

import os
import socket
import sys
import time

server = socket.create_server(("127.0.0.1", 9000))
os.write(3, b"ready\n")
os.close(3)
client, _ = server.accept()
time.sleep(float(sys.argv[1]))
while client.recv(1 << 20):
    pass
