"""Forty threads that wait for clients, and one that waits for work: in a loop that gives way, or asleep.

Tells on SIGTERM how long it has run, and for how much of that its loop had a CPU.
"""

import json
import os
import signal
import socket
import sys
import threading
import time

how, truth = sys.argv[1:3]
over = threading.Event()
used = 0


def accept():
    listener = socket.create_server(("127.0.0.1", 0))
    while True:
        listener.accept()[0].close()


def await_work():
    global used
    while not over.is_set():
        if how == "yield":
            os.sched_yield()
            any(over.is_set() for _ in range(200))
        else:
            over.wait()
        used = time.thread_time_ns()


for _ in range(40):
    threading.Thread(target=accept, daemon=True).start()
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
began = time.monotonic_ns()
worker = threading.Thread(target=await_work)
worker.start()
os.write(3, b"ready\n")
signal.sigwait({signal.SIGTERM})
elapsed = time.monotonic_ns() - began
over.set()
worker.join()
with open(truth, "a") as file:
    file.write(json.dumps({"waited_ns": used if how == "yield" else 0, "elapsed_ns": elapsed}) + "\n")
