"""service.py agent | loop SOCKET | asks SOCKET GATE | tells SOCKET GATE: a client every 0.4 s, who waits for an answer or closes"""

import os
import selectors
import socket
import sys
import time

PORT = 8097
# Between two clients, seconds: several come while anybody looks.
BETWEEN = 0.4


def ready():
    os.write(3, b"ready\n")
    os.close(3)


def agent():
    listener = socket.create_server(("127.0.0.1", PORT))
    ready()
    connection, _ = listener.accept()
    while connection.recv(100):
        pass


def loop(path):
    """Asks the agent whenever it gets something; closes a client that has closed."""
    behind = socket.create_connection(("127.0.0.1", PORT))
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen()
    selector = selectors.DefaultSelector()
    for one in (behind, listener):
        selector.register(one, selectors.EVENT_READ)
    ready()
    while True:
        for key, _ in selector.select():
            if key.fileobj is listener:
                client, _ = listener.accept()
                selector.register(client, selectors.EVENT_READ)
            elif key.fileobj.recv(100):
                behind.sendall(b"do\n")
            else:
                selector.unregister(key.fileobj)
                key.fileobj.close()


def client(path, gate, waits):
    ready()
    # Opened for reading and writing, so that whoever opens the gate does not stand there.
    with open(gate, "r+b", buffering=0) as opened:
        opened.read(1)
    waiting = []
    while True:
        time.sleep(BETWEEN)
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(path)
        connection.sendall(b"?\n")
        if waits:
            waiting.append(connection)
        else:
            connection.close()


if sys.argv[1] == "agent":
    agent()
elif sys.argv[1] == "loop":
    loop(sys.argv[2])
else:
    client(sys.argv[2], sys.argv[3], sys.argv[1] == "asks")
