"""A server that serves one client at a time on 127.0.0.1:9000, with room for two more in its queue: `server.py PAUSE` needs PAUSE
seconds for each. Says "ready" on descriptor 3 when it listens."""

import os
import socket
import sys
import time

server = socket.socket()
server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
server.bind(("127.0.0.1", 9000))
server.listen(1)
os.write(3, b"ready\n")
os.close(3)
while True:
    client, _ = server.accept()
    client.recv(100)
    time.sleep(float(sys.argv[1]))
    client.sendall(b"done\n")
    client.close()
