"""A log server: accepts one connection and reads all that comes, as fast as it can.

Arguments: the port. Prints "accepted" once somebody is connected.
"""

import socket
import sys

listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
connection, _ = listener.accept()
print("accepted", flush=True)
while connection.recv(65536):
    pass
