"""Makes a file, locks it in each way there is, and keeps it: keep_lock.py FILE."""

import fcntl
import os
import signal
import sys

file = open(sys.argv[1], "w")
fcntl.flock(file, fcntl.LOCK_EX)
fcntl.lockf(file, fcntl.LOCK_EX)
os.write(3, b"ready\n")
os.close(3)
signal.pause()
