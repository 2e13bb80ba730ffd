"""A name server on 127.0.0.1:53 whose answers come DELAY seconds after their questions: DELAY.

It never ends by itself.
"""

import os
import select
import socket
import struct
import sys
import time
from collections import deque

ADDRESS = bytes([192, 0, 2, 10])


def answer(query: bytes) -> bytes:
    """The answer to a question for an address: there is one."""
    head = query[:2] + struct.pack("!HHHHH", 0x8180, 1, 1, 0, 0)
    # The record's name is a pointer to the question's at offset 12.
    record = struct.pack("!HHHIH", 0xC00C, 1, 1, 60, len(ADDRESS)) + ADDRESS
    return head + query[12 : query.index(b"\0", 12) + 5] + record


def main() -> None:
    delay = float(sys.argv[1])
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    # Hundreds ask at once; none of them is to ask again because its question was dropped.
    server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
    server.bind(("127.0.0.1", 53))
    os.write(3, b"ready\n")
    os.close(3)
    late = deque()
    while True:
        wait = max(0.0, late[0][0] - time.monotonic()) if late else None
        if select.select([server], [], [], wait)[0]:
            query, client = server.recvfrom(4096)
            late.append((time.monotonic() + delay, answer(query), client))
        while late and late[0][0] <= time.monotonic():
            _, text, client = late.popleft()
            server.sendto(text, client)


main()
