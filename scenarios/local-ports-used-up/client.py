"""Makes ten connections one after the other and closes each first, so that its port stays taken for a while; sleeps where none is
left. Then it writes how long it slept, and how long all of it took."""
import errno
import json
import socket
import sys
import time

began = time.monotonic_ns()
slept = made = 0
while made < 10:
    try:
        with socket.create_connection(("127.0.0.1", 9000)) as connection:
            connection.sendall(b"x")
        made += 1
    except OSError as error:
        if error.errno != errno.EADDRNOTAVAIL:
            raise
        before = time.monotonic_ns()
        time.sleep(0.1)
        slept += time.monotonic_ns() - before
with open(sys.argv[1], "a") as truth:
    told = {"waited_ns": slept, "elapsed_ns": time.monotonic_ns() - began}
    truth.write(json.dumps(told) + "\n")
