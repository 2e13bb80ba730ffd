"""An entropy daemon without entropy: a byte every PAUSE seconds into FIFO, from when it has a reader: FIFO PAUSE (0: all at once).

With a further word, `again`, it waits for the next reader when one has gone; what that one left unread is gone with it.
"""

import os
import sys
import time


def feed(path: str, pause: float) -> None:
    """Until its reader has gone."""
    device = os.open(path, os.O_WRONLY)
    try:
        while True:
            if pause:
                time.sleep(pause)
            os.write(device, b"\x5a")
    except BrokenPipeError:
        os.close(device)


path, pause = sys.argv[1], float(sys.argv[2])
os.write(3, b"ready\n")
os.close(3)
feed(path, pause)
while sys.argv[3:] == ["again"]:
    feed(path, pause)
