"""Starts seq with its output in a pipe, waits for it to end, and reads then: NUMBERS TRUTH.

Somebody ends the wait by an interrupt. What the main thread neither ran nor was ready for until then is added to the file
TRUTH.
"""

import json
import signal
import subprocess
import sys
import time


def clocks():
    """Now, this thread's time on a CPU, and how long it has been ready and not running."""
    with open("/proc/thread-self/schedstat") as schedstat:
        queued = int(schedstat.read().split()[1])
    return time.monotonic_ns(), time.thread_time_ns(), queued


def interrupted(_signal, _frame):
    global ended
    ended = clocks()
    raise KeyboardInterrupt


numbers, path = sys.argv[1:]
signal.signal(signal.SIGINT, interrupted)
started = ended = clocks()
child = subprocess.Popen(["seq", numbers], stdout=subprocess.PIPE)
try:
    child.wait()
    ended = clocks()
except KeyboardInterrupt:
    pass
elapsed, used, queued = (now - before for now, before in zip(ended, started))
with open(path, "a") as truth:
    line = {"waited_ns": max(0, elapsed - used - queued), "elapsed_ns": elapsed, "queued_ns": queued}
    truth.write(json.dumps(line) + "\n")
child.stdout.read()
