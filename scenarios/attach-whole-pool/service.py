# A server with three worker processes, the program behind it, and five clients.
# Argument: `stall`, and the program behind it never answers; else it does at once, and each client asks every 50 ms.
import os
import select
import socket
import sys
import time

FRONT = ("127.0.0.1", 8082)
BEHIND = ("127.0.0.1", 8083)
WORKERS = 3
CLIENTS = 5
silent = sys.argv[1] == "stall"
front = socket.create_server(FRONT)
behind = socket.create_server(BEHIND)


def be_behind():
    front.close()
    kept = []
    while True:
        connection, _ = behind.accept()
        connection.recv(16)
        if silent:
            kept.append(connection)
        else:
            connection.sendall(b"rate")
            connection.close()


def ask_behind():
    with socket.create_connection(BEHIND) as connection:
        connection.sendall(b"rates?")
        return connection.recv(16)


def work():
    behind.close()
    while True:
        connection, _ = front.accept()
        connection.recv(16)
        connection.sendall(ask_behind())
        connection.close()


def be_a_client():
    front.close()
    behind.close()
    while True:
        with socket.create_connection(FRONT) as connection:
            connection.sendall(b"page")
            connection.recv(16)
        time.sleep(0.05)


def start(what):
    if os.fork() == 0:
        os.closerange(3, 4)
        what()


# The program behind it and the clients are no children of the server: they are not asked about.
if os.fork() == 0:
    start(be_behind)
    if os.fork() == 0:
        for _ in range(CLIENTS - 1):
            if os.fork() == 0:
                break
        os.closerange(3, 4)
        be_a_client()
    os._exit(0)
os.wait()
for _ in range(WORKERS):
    start(work)
behind.close()


def taken():
    """Whether as many clients stand in the queue as the workers leave, by the kernel's table."""
    with open("/proc/net/tcp") as table:
        for line in table:
            words = line.split()
            if words[1].endswith(":%04X" % FRONT[1]) and words[3] == "0A":
                return int(words[4].split(":")[1], 16) == CLIENTS - WORKERS
    return False


while silent and not taken():
    time.sleep(0.01)
with os.fdopen(3, "w") as ready:
    ready.write("ready\n")
# As masters do: once a second it looks after its workers.
wakes, _ = os.pipe()
while True:
    select.select([wakes], [], [], 1)
