"""A client of the reports."""
import socket
import sys

def fetch(port):
    with socket.create_connection(("127.0.0.1", port)) as server:
        server.sendall(b"report\n")
        return server.recv(100)

print(fetch(int(sys.argv[1])))
