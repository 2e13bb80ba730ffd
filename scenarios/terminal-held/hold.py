"""A terminal whose output is read, and held until a second after the GATE has opened: stall|healthy NAME GATE.

Writes the terminal's path to the file NAME.
"""

import os
import pty
import sys
import termios
import threading
import time
import tty

mode, name, gate = sys.argv[1:]
master, terminal = pty.openpty()
tty.setraw(terminal)
with open(name, "w") as path:
    path.write(os.ttyname(terminal))
if mode == "stall":
    termios.tcflow(terminal, termios.TCOOFF)


def read():
    while os.read(master, 65536):
        pass


threading.Thread(target=read).start()
os.write(3, b"ready\n")
os.close(3)
with open(gate) as opened:
    opened.readline()
if mode == "stall":
    time.sleep(1.0)
    termios.tcflow(terminal, termios.TCOON)
