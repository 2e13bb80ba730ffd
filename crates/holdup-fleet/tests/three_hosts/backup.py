"""Has the lock for a second and a half, again and again."""

import fcntl
import sys
import time

with open(sys.argv[1], "w") as lock:
    while True:
        fcntl.flock(lock, fcntl.LOCK_EX)
        time.sleep(1.5)
        fcntl.flock(lock, fcntl.LOCK_UN)
        time.sleep(0.02)
