"""Stops the process whose id comes through GATE for a second, and answers it: stall|healthy GATE ANSWER TRUTH.

The truth is the time from when the process was seen to be stopped to when it was told to go on.
"""

import os
import signal
import sys
import time


def state(pid: int) -> str:
    """The kernel's letter for what the process does; it comes after the name in brackets."""
    with open(f"/proc/{pid}/stat") as stat:
        return stat.read().rpartition(")")[2].split()[0]


def main() -> None:
    mode, gate, answer, truth = sys.argv[1:]
    os.write(3, b"ready\n")
    os.close(3)
    with open(gate) as opened:
        pid = int(opened.readline())
    if mode == "stall":
        os.kill(pid, signal.SIGSTOP)
        while state(pid) != "T":
            pass
        stopped = time.monotonic_ns()
        time.sleep(1.0)
        # Opened for both so that this does not wait for the stopped process; the line waits for it.
        reply = os.open(answer, os.O_RDWR)
        os.write(reply, b"go on\n")
        with open(truth, "a") as lines:
            waited = time.monotonic_ns() - stopped
            lines.write(f'{{"waited_ns": {waited}, "holder_pid": {os.getpid()}}}\n')
        os.kill(pid, signal.SIGCONT)
        signal.pause()
    else:
        with open(answer, "w") as reply:
            reply.write("go on\n")


main()
