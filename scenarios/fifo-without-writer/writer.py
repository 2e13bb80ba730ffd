"""Opens FIFO for writing a second after the GATE has opened, or before: stall|healthy FIFO GATE."""

import os
import sys
import time

mode, fifo, gate = sys.argv[1:]
writer = None
if mode == "healthy":
    # For reading as well, so that it need not wait itself.
    writer = os.open(fifo, os.O_RDWR)
    os.write(writer, b"line\n")
os.write(3, b"ready\n")
os.close(3)
with open(gate) as opened:
    opened.readline()
if mode == "stall":
    time.sleep(1.0)
    writer = os.open(fifo, os.O_WRONLY)
    os.write(writer, b"line\n")
else:
    # The reader sees the end once it has the FIFO open itself: this other end must not go before.
    os.close(os.open(fifo, os.O_WRONLY))
os.close(writer)
