"""Computes two pieces in THREADS threads, and adds to the file TRUTH what they waited: THREADS TRUTH.

What a thread neither ran nor was ready for is its wait for the interpreter's lock: it does nothing else.
"""

import json
import sys
import threading
import time

THREADS, TRUTH = int(sys.argv[1]), sys.argv[2]
PIECES, STEPS = 2, 6_000_000
waited = lived = queued = 0


def queued_ns():
    """How long this thread has been ready and not running."""
    with open("/proc/thread-self/schedstat") as schedstat:
        return int(schedstat.read().split()[1])


def compute(pieces):
    global waited, lived, queued
    started, busy = time.monotonic_ns(), time.thread_time_ns()
    total = 0
    for step in range(pieces * STEPS):
        total += step
    elapsed, used, ready = time.monotonic_ns() - started, time.thread_time_ns() - busy, queued_ns()
    waited += max(0, elapsed - used - ready)
    lived += elapsed
    queued += ready


# The main thread is one of them, so that little of its life is a join.
others = [threading.Thread(target=compute, args=(PIECES // THREADS,)) for _ in range(THREADS - 1)]
for thread in others:
    thread.start()
compute(PIECES // THREADS)
for thread in others:
    thread.join()
with open(TRUTH, "a") as truth:
    truth.write(json.dumps({"waited_ns": waited, "elapsed_ns": lived, "queued_ns": queued}) + "\n")
