"""A terminal on which a line is typed: stall|healthy NAME GATE.

Writes the terminal's path to the file NAME. The line comes a second after the gate has opened, or at once.
"""

import os
import pty
import signal
import sys
import time

mode, name, gate = sys.argv[1:]
master, terminal = pty.openpty()
with open(name, "w") as path:
    path.write(os.ttyname(terminal))
if mode == "healthy":
    os.write(master, b"yes\n")
os.write(3, b"ready\n")
os.close(3)
with open(gate) as opened:
    opened.readline()
if mode == "stall":
    time.sleep(1.0)
    os.write(master, b"yes\n")
signal.pause()
