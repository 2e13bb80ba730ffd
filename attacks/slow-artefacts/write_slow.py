"""Writes artefacts that cost time: write_slow.py FOLDER SAMPLES."""

import os
import sys

folder, samples = sys.argv[1], sys.argv[2]
SIZE = 6 << 20


def write(name, pieces, size=SIZE):
    with open(os.path.join(folder, name), "wb") as file:
        left = size
        for piece in pieces:
            file.write(piece)
            left -= len(piece)
            if left <= 0:
                break


def forever(make):
    number = 0
    while True:
        yield make(number)
        number += 1


def threads(number):
    return (
        f'"pool-{number % 7}" #{number} prio=5 os_prio=0 tid=0x{number:x} nid=0x{number:x} waiting for monitor entry [0x1]\n'
        "   java.lang.Thread.State: BLOCKED (on object monitor)\n"
        f"\tat a.b.C.d(C.java:1)\n\t- waiting to lock <0x{number + 1:016x}> (a java.lang.Object)\n"
        f"\tat a.b.C.e(C.java:2)\n\t- locked <0x{number:016x}> (a java.lang.Object)\n\n"
    ).encode()


def deep_thread(_):
    yield b'Full thread dump OpenJDK 64-Bit Server VM (17+35 mixed mode):\n\n"main" #1 prio=5 os_prio=0 tid=0x1 nid=0x1 waiting on condition\n   java.lang.Thread.State: WAITING (parking)\n'
    while True:
        yield b"\tat a.b.C.d(C.java:1)\n\t- locked <0x0000000000000001> (a java.lang.Object)\n"


HEAD = b"2026-11-22 10:00:00\nFull thread dump OpenJDK 64-Bit Server VM (17+35 mixed mode):\n\n"
write("lock-chain.txt", [HEAD, *map(threads, range(40_000))])
write("deep-thread.txt", deep_thread(0))
write("many-dumps.txt", forever(lambda number: HEAD + threads(number)))
write("one-line.txt", [b'"main" #1 prio=5 tid=0x1 nid=0x1 ' + b"a" * SIZE])
write("json-deep.json", [b"[" * (SIZE // 2), b"]" * (SIZE // 2)])
write("json-keys.json", [b'{"threadDump":{', b",".join(b'"%d":{}' % number for number in range(400_000)), b"}}"])
write("goroutines.txt", forever(lambda number: b"goroutine %d [chan receive, 5 minutes]:\nmain.f(0x%x)\n\t/a/b.go:%d +0x1\n\n" % (number, number, number)))
write("collapsed.txt", forever(lambda number: b";".join(b"f%d" % (number * depth % 1009) for depth in range(1, 120)) + b" 1\n"))
write("collapsed-deep.txt", [b";".join([b"f"] * (SIZE // 2)) + b" 1\n"])
write("strace.txt", forever(lambda number: b"%d 10:00:00.%06d futex(0x7f%x, FUTEX_WAIT, 0, NULL <unfinished ...>\n" % (number, number % 10**6, number)))
write("ps.txt", [b"  PID  PPID STAT WCHAN COMMAND\n", *[b"%d %d D f%d c%d\n" % (n, n - 1, n % 9, n) for n in range(1, 300_000)]])
write("dmesg.txt", forever(lambda number: b"[%12.6f] INFO: task a:%d blocked for more than 120 seconds.\n[%12.6f] Call Trace:\n[%12.6f]  f+0x1/0x2\n" % (number, number, number, number)))
write("escapes.log", forever(lambda _: b"\x1b[31m\x1b]0;x\x07" * 100 + b"\n"))
write("newlines.txt", [b"\n" * SIZE])
write("nul.txt", [b"\0" * SIZE])
write("spaces.txt", [b" " * SIZE, b"x\n"])
# Every sample again and again, as one file: what is a section for its reader is many.
for kind in sorted(os.listdir(samples)):
    place = os.path.join(samples, kind)
    if not os.path.isdir(place):
        continue
    for name in sorted(os.listdir(place))[:1]:
        path = os.path.join(place, name)
        if os.path.isfile(path) and os.path.getsize(path) > 0:
            text = open(path, "rb").read()
            if len(text) < SIZE // 20:
                write(f"again-{kind}-{name}", forever(lambda _: text + b"\n"), SIZE // 4)
