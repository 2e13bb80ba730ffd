"""Freezes CGROUP for a second once GATE has opened, and then makes FILE: stall|healthy GATE CGROUP FILE."""

import os
import sys
import time


def freeze(cgroup: str, frozen: bool) -> None:
    """Returns when all of it is frozen."""
    with open(f"{cgroup}/cgroup.freeze", "w") as switch:
        switch.write("1" if frozen else "0")
    wanted = f"frozen {int(frozen)}"
    while wanted not in open(f"{cgroup}/cgroup.events").read():
        time.sleep(0.001)


def main() -> None:
    mode, gate, cgroup, file = sys.argv[1:]
    os.write(3, b"ready\n")
    os.close(3)
    with open(gate) as opened:
        opened.readline()
    if mode == "stall":
        freeze(cgroup, True)
        time.sleep(1.0)
        open(file, "w").close()
        freeze(cgroup, False)
    else:
        open(file, "w").close()


main()
