"""A log's collector: reads PIPE and pauses PAUSE seconds after each 4096 bytes: PIPE PAUSE. Says "ready" on descriptor 3."""

import os
import sys
import time

path, pause = sys.argv[1], float(sys.argv[2])
# Also for writing, so that it does not wait for its writer, and then not any more, so that its end is seen.
pipe = os.open(path, os.O_RDWR)
reader = os.open(path, os.O_RDONLY)
os.write(3, b"ready\n")
os.close(3)
first = os.read(reader, 1)
os.close(pipe)
while os.read(reader, 4096):
    time.sleep(pause)
