"""A name server on 127.0.0.1:53 that takes 8 ms for each question. It knows the names right below `shop.test`; others do
not exist."""

import os
import socket
import struct
import time

TYPE_A = 1
ADDRESS = bytes([192, 0, 2, 10])
NO_SUCH_NAME = 3

server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind(("127.0.0.1", 53))
os.write(3, b"ready\n")
os.close(3)
while True:
    query, client = server.recvfrom(4096)
    time.sleep(0.008)
    end = query.index(b"\0", 12) + 5  # the name's end, then type and class
    (kind,) = struct.unpack("!H", query[end - 4 : end - 2])
    known = query[12 : end - 4].endswith(b"\x04shop\x04test\0")
    found = known and kind == TYPE_A
    head = struct.pack("!HHHHH", 0x8180 | (0 if known else NO_SUCH_NAME), 1, int(found), 0, 0)
    # The record's name is a pointer to the question's at offset 12.
    record = struct.pack("!HHHIH", 0xC00C, TYPE_A, 1, 60, len(ADDRESS)) + ADDRESS
    server.sendto(query[:2] + head + query[12:end] + (record if found else b""), client)
