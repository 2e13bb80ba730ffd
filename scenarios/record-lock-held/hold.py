"""Locks 100 bytes of FILE at OFFSET, and a second after the GATE has opened lets go: FILE OFFSET GATE."""

import fcntl
import os
import sys
import time

path, offset, gate = sys.argv[1], int(sys.argv[2]), sys.argv[3]
with open(path, "r+b") as table:
    fcntl.lockf(table, fcntl.LOCK_EX, 100, offset)
    os.write(3, b"ready\n")
    os.close(3)
    with open(gate) as opened:
        opened.readline()
    time.sleep(1.0)
