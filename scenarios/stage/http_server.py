"""An HTTP server that lets every client wait before it answers: tcp HOST:PORT DELAY, or unix PATH DELAY.

It never ends by itself.
"""

import os
import socket
import sys
import time

PAGE = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nok\n"


def main() -> None:
    family, address, delay = sys.argv[1], sys.argv[2], float(sys.argv[3])
    if family == "unix":
        server = socket.socket(socket.AF_UNIX)
        server.bind(address)
    else:
        host, _, port = address.rpartition(":")
        server = socket.socket(socket.AF_INET)
        server.bind((host, int(port)))
    server.listen()
    os.write(3, b"ready\n")
    os.close(3)
    while True:
        client, _ = server.accept()
        with client:
            if client.recv(65536):
                time.sleep(delay)
                client.sendall(PAGE)


main()
