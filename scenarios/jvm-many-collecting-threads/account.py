"""The kernel's account of the threads of a server, before and after something: account.py PID FILE of the client, then a line on stdin ends it.

A thread has run, or was ready and had no CPU: the quota's doing, but for what it queued. The first thread has waited for the collectors,
besides, for as long as a request was under way and it did neither. All others that wait do so because there is nothing to do.
Prints what stage.sh calls a truth."""

import glob
import json
import sys
import time

PID, LOG = sys.argv[1], sys.argv[2]


def account():
    """Nanoseconds that threads ran, and were ready: of the one that answers, and of all. That one is not the process's first."""
    own, every = {}, [0, 0]
    for task in glob.glob(f"/proc/{PID}/task/*"):
        try:
            ran, ready = map(int, open(f"{task}/schedstat").read().split()[:2])
            name = open(f"{task}/comm").read().strip()
        except OSError:
            continue
        every[0] += ran
        every[1] += ready
        if name == "java" and not task.endswith(f"/{PID}"):
            own = ran + ready
    return time.monotonic(), own, every


begun, own_before, before = account()
sys.stdin.readline()
ended, own_after, after = account()
asked = 0.0
for line in open(LOG):
    since, until = map(float, line.split())
    asked += max(0.0, min(until, ended) - max(since, begun))
ran, ready = after[0] - before[0], after[1] - before[1]
collectors = max(0, int(asked * 1e9) - (own_after - own_before))
print(json.dumps({"waited_ns": ready, "elapsed_ns": ran + ready + collectors}))
