"""Reads FIFO to its end, 64 KiB (all that a pipe holds) at a time, and pauses before each: FIFO PAUSE."""

import os
import sys
import time

path, pause = sys.argv[1], float(sys.argv[2])
os.write(3, b"ready\n")
os.close(3)
queue = os.open(path, os.O_RDONLY)
while True:
    time.sleep(pause)
    if not os.read(queue, 65536):
        break
