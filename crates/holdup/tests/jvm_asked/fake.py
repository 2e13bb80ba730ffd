"""What looks like a JVM that holdup can't read: it has a file of that name mapped, handles SIGQUIT, and a thread of it waits.

fake.py LIBRARY: says "runs", and for each SIGQUIT a line with what is in its /tmp. It opens no socket.
"""

import mmap
import os
import signal
import sys
import threading

with open(sys.argv[1], "rb") as library:
    mapped = mmap.mmap(library.fileno(), 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_EXEC)


def asked(_signal, _frame):
    os.write(1, f"asked: {sorted(os.listdir('/tmp'))}\n".encode())


signal.signal(signal.SIGQUIT, asked)
threading.Thread(target=threading.Event().wait, daemon=True).start()
os.write(1, b"runs\n")
while True:
    signal.pause()
