"""Holds a lock for most of the time, and lets go of it for a moment."""
import fcntl
import sys
import time

lock = open(sys.argv[1], "w")
with open(3, "w") as ready:
    ready.write("ready\n")
while True:
    fcntl.flock(lock, fcntl.LOCK_EX)
    time.sleep(0.15)
    fcntl.flock(lock, fcntl.LOCK_UN)
    time.sleep(0.005)
