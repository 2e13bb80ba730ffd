"""Reports, by two workers that accept from one listener."""
import os
import signal
import socket
import sys

LEDGER = ("127.0.0.1", int(sys.argv[2]))


def balance():
    with socket.create_connection(LEDGER) as ledger:
        ledger.sendall(b"balance\n")
        return ledger.recv(100)


def work(listener):
    while True:
        client, _ = listener.accept()
        with client:
            if client.recv(100):
                client.sendall(balance())


listener = socket.create_server(("127.0.0.1", int(sys.argv[1])), backlog=16)
for _ in range(2):
    if os.fork() == 0:
        work(listener)
signal.pause()
