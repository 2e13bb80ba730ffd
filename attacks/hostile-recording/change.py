"""Writes changed copies of a recording: change.py FILE FOLDER. What is changed is drawn with a fixed seed."""

import os
import random
import struct
import sys

source, folder = sys.argv[1], sys.argv[2]
base = open(source, "rb").read()
draw = random.Random(17)
footer = struct.unpack("<I", base[-8:-4])[0]
begin = len(base) - 8 - footer


def write(name, data):
    with open(os.path.join(folder, name + ".parquet"), "wb") as file:
        file.write(data)


for number in range(40):
    data = bytearray(base)
    for _ in range(draw.choice([1, 1, 3, 10])):
        data[draw.randrange(begin, len(data) - 8)] = draw.randrange(256)
    write(f"footer{number}", data)
for number in range(20):
    data = bytearray(base)
    for _ in range(draw.choice([1, 5, 50])):
        data[draw.randrange(4, begin)] = draw.randrange(256)
    write(f"body{number}", data)
# The largest numbers that a length of up to ten bytes can be, where the footer has one.
for number in range(15):
    data = bytearray(base)
    place = draw.randrange(begin, len(data) - 20)
    data[place : place + 9] = b"\xfe\xff\xff\xff\xff\xff\xff\xff\x7f"
    write(f"huge{number}", data)
for number, length in enumerate([0, 4, 11, 12, len(base) // 2, len(base) - 1]):
    write(f"cut{number}", base[:length])
write("footer-too-long", base[:-8] + struct.pack("<I", 0xFFFFFFFF) + b"PAR1")
write("footer-negative", base[:-8] + struct.pack("<i", -1) + b"PAR1")
