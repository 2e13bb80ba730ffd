"""Prints the BPF links that no process holds: such a link would trace for ever.

A link that ends while it is looked at is none: it is looked at again.
"""

import ctypes
import glob
import os
import platform
import struct

BPF = {"x86_64": 321, "aarch64": 280}[platform.machine()]
LINK_GET_NEXT_ID = 31
# How often an id without a process is looked at again: whoever holds it may be between fork and exec, or ending.
LOOKS = 5

libc = ctypes.CDLL(None, use_errno=True)


def links():
    """The ids of all links of this kernel."""
    found, at = set(), 0
    while True:
        attr = ctypes.create_string_buffer(struct.pack("=III", at, 0, 0), 128)
        if libc.syscall(BPF, LINK_GET_NEXT_ID, attr, 128) != 0:
            return found
        at = struct.unpack_from("=III", attr)[1]
        found.add(at)


def held():
    """The ids of links that some process has a descriptor of, and of those that are pinned."""
    found = set()
    for info in glob.glob("/proc/[0-9]*/fdinfo/*"):
        try:
            with open(info) as text:
                found.update(int(line.split()[1]) for line in text if line.startswith("link_id:"))
        except OSError:
            continue
    return found


left = links() - held()
for _ in range(LOOKS):
    if not left:
        break
    os.sched_yield()
    left &= links() - held()
print(*sorted(left))
