"""Listens on 127.0.0.1:9000 with room for one client in the queue. With the argument `never` it fills the queue itself
and accepts nobody; else it accepts everybody."""

import os
import socket
import sys
import time

server = socket.socket()
server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
server.bind(("127.0.0.1", 9000))
server.listen(0)
filling = []
if sys.argv[1] == "never":
    filling.append(socket.create_connection(("127.0.0.1", 9000)))
os.write(3, b"ready\n")
os.close(3)
while sys.argv[1] == "never":
    time.sleep(60)
while True:
    server.accept()[0].close()
