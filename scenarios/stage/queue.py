"""A queue of small files, each made safe on its own, as mail servers have it: queue.py DIRECTORY WORKERS PAUSE.

So many processes write a file, sync it and take a pause, again and again, until this one is told to end; then it sees to
them. Says "ready" on descriptor 3 when all of them are at it.
"""

import os
import signal
import sys
import time

directory, workers, pause = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])


def work(number):
    with open("/proc/self/comm", "w") as name:
        name.write("mqueue")
    while True:
        with open(os.path.join(directory, str(number)), "w") as file:
            file.write("x" * 512)
            file.flush()
            os.fsync(file.fileno())
        time.sleep(pause)


children = []
for number in range(workers):
    child = os.fork()
    if child == 0:
        os.close(3)
        work(number)
    children.append(child)


def end(*_):
    for child in children:
        os.kill(child, signal.SIGKILL)
    for child in children:
        os.waitpid(child, 0)
    sys.exit(0)


signal.signal(signal.SIGTERM, end)
os.write(3, b"ready\n")
os.close(3)
while True:
    signal.pause()
