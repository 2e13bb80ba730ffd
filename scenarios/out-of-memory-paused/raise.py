"""Raises the limit of CGROUP a second after it has stopped somebody: stall|healthy GATE CGROUP."""

import os
import sys
import time


def main() -> None:
    mode, gate, cgroup = sys.argv[1:]
    os.write(3, b"ready\n")
    os.close(3)
    with open(gate) as opened:
        opened.readline()
    if mode == "stall":
        while "under_oom 1" not in open(f"{cgroup}/memory.oom_control").read():
            time.sleep(0.001)
        time.sleep(1.0)
        with open(f"{cgroup}/memory.limit_in_bytes", "w") as limit:
            limit.write("128M")


main()
