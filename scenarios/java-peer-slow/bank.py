"""A bank: answers each client after DELAY seconds: PORT DELAY. Says "ready" on descriptor 3."""

import os
import socket
import sys
import threading
import time

delay = float(sys.argv[2])
server = socket.create_server(("127.0.0.1", int(sys.argv[1])))
os.write(3, b"ready\n")
os.close(3)


def answer(client: socket.socket) -> None:
    with client:
        client.recv(65536)
        time.sleep(delay)
        client.sendall(b"HTTP/1.0 200 OK\r\n\r\n")


while True:
    threading.Thread(target=answer, args=(server.accept()[0],), daemon=True).start()
