"""Feeds FIFO with 16 bytes, one every PAUSE seconds, from when it has a reader: FIFO PAUSE."""

import os
import sys
import time

path, pause = sys.argv[1], float(sys.argv[2])
os.write(3, b"ready\n")
os.close(3)
device = os.open(path, os.O_WRONLY)
for _ in range(16):
    time.sleep(pause)
    os.write(device, b"\x5a")
