"""A name server on 127.0.0.1:53 that reads every query and, as its argument says, is `silent` or `answers`, after so many seconds
for each query where a second argument says so.

Answers are 192.0.2.10 for every A query and "no such data" for every other type. It never ends by itself.
"""

import os
import socket
import struct
import sys
import time

TYPE_A = 1
ADDRESS = bytes([192, 0, 2, 10])


def answer(query: bytes) -> bytes:
    """The answer to a query with one question."""
    end = query.index(b"\0", 12) + 5  # the name's end, then type and class
    (kind,) = struct.unpack("!H", query[end - 4 : end - 2])
    found = kind == TYPE_A
    head = query[:2] + struct.pack("!HHHHH", 0x8180, 1, int(found), 0, 0)
    # The record's name is a pointer to the question's at offset 12; it may be cached for a minute.
    record = struct.pack("!HHHIH", 0xC00C, TYPE_A, 1, 60, len(ADDRESS)) + ADDRESS
    return head + query[12:end] + (record if found else b"")


def main() -> None:
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind(("127.0.0.1", 53))
    os.write(3, b"ready\n")
    os.close(3)
    delay = float(sys.argv[2]) if len(sys.argv) > 2 else 0.0
    while True:
        query, client = server.recvfrom(4096)
        if sys.argv[1] == "answers":
            time.sleep(delay)
            server.sendto(answer(query), client)


main()
