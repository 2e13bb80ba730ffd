"""A ledger that closes its month before it answers anybody."""
import socket
import sys
import threading
import time


def close_month(connection):
    connection.recv(100)
    time.sleep(600)
    connection.sendall(b"closed\n")


listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
while True:
    client, _ = listener.accept()
    threading.Thread(target=close_month, args=(client,), daemon=True).start()
