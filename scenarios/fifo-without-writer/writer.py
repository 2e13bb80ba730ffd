"""Opens FIFO for writing a second after the GATE has opened, or before, and writes a line: stall|healthy FIFO GATE."""

import os
import signal
import sys
import time

mode, fifo, gate = sys.argv[1:]
if mode == "healthy":
    # For reading as well, so that it need not wait itself.
    os.write(os.open(fifo, os.O_RDWR), b"line\n")
os.write(3, b"ready\n")
os.close(3)
with open(gate) as opened:
    opened.readline()
if mode == "stall":
    time.sleep(1.0)
    os.write(os.open(fifo, os.O_WRONLY), b"line\n")
signal.pause()
