"""An entropy daemon without entropy: a byte every PAUSE seconds into FIFO, from when it has a reader: FIFO PAUSE (0: all at once)."""

import os
import sys
import time

path, pause = sys.argv[1], float(sys.argv[2])
os.write(3, b"ready\n")
os.close(3)
device = os.open(path, os.O_WRONLY)
# Until its reader has gone.
try:
    while True:
        if pause:
            time.sleep(pause)
        os.write(device, b"\x5a")
except BrokenPipeError:
    pass
