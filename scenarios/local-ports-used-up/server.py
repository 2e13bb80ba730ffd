"""Takes a byte on each connection to port 9000, and waits for the client to close it."""
import socket

with socket.create_server(("127.0.0.1", 9000), backlog=64) as server:
    with open(3, "w") as ready:
        ready.write("ready\n")
    while True:
        connection, _ = server.accept()
        with connection:
            while connection.recv(64):
                pass
