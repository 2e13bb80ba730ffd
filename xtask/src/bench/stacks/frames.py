"""Run inside gdb: attach to each process of PIDS and write every thread's frames to OUT as JSON.

In: the variables PIDS (numbers) and OUT (a path). Out: a list of threads, each with its frames, innermost first:
what gdb calls the function, the symbol and offset at the address, the module and the address within it.
"""
import gdb
import json
import os
import re
import struct

SYMBOL = re.compile(r"^(.+?)(?: \+ (\d+))? in section \S+(?: of (.+))?$")
DEEPEST = 400


def code(pid):
    """The process's mappings of code: start, end, offset in the file, path."""
    found = []
    with open(f"/proc/{pid}/maps") as lines:
        for line in lines:
            fields = line.split(None, 5)
            if "x" in fields[1]:
                start, end = (int(part, 16) for part in fields[0].split("-"))
                path = fields[5].rstrip("\n") if len(fields) > 5 else ""
                found.append((start, end, int(fields[2], 16), path))
    return found


def segments(path):
    """Loaded segments of a 64-bit ELF file: offset, size in the file, address."""
    with open(path, "rb") as file:
        header = file.read(64)
        if header[:5] != b"\x7fELF\x02":
            return []
        table, = struct.unpack_from("<Q", header, 32)
        size, count = struct.unpack_from("<HH", header, 54)
        file.seek(table)
        rows = [struct.unpack("<IIQQQQQQ", file.read(size)[:56]) for _ in range(count)]
    return [(row[2], row[5], row[3]) for row in rows if row[0] == 1 and row[1] & 1]


def place(maps, pid, pc, cache):
    """Module and address within it of the code at pc; None where no code is mapped."""
    for start, end, offset, path in maps:
        if start <= pc < end:
            if path.startswith("/"):
                if path not in cache:
                    cache[path] = segments(f"/proc/{pid}/map_files/{start:x}-{end:x}")
                into = pc - start + offset
                for at, size, address in cache[path]:
                    if at <= into < at + size:
                        return os.path.basename(path.removesuffix(" (deleted)")), into - at + address
            return (path or None), pc - start + offset
    return None


def frames(maps, pid, cache):
    found = []
    frame = gdb.newest_frame()
    called = False
    while frame is not None and len(found) < DEEPEST:
        pc = frame.pc()
        if pc == 0:
            # The bottom of a stack whose first function returns nowhere.
            break
        # Neither is on the stack: the compiler left them out, debug information tells of them.
        inlined = frame.type() in (gdb.INLINE_FRAME, gdb.TAILCALL_FRAME)
        where = place(maps, pid, pc - called, cache)
        one = {"pc": pc, "name": frame.name(), "inlined": inlined, "code": where is not None}
        if where is not None:
            one["module"], one["address"] = where[0], where[1] + called
            text = gdb.execute(f"info symbol {pc - called:#x}", to_string=True).split("\n")[0]
            match = SYMBOL.match(text)
            if match:
                one["symbol"], one["offset"] = match[1], int(match[2] or 0) + called
        found.append(one)
        if not inlined:
            called = frame.type() != gdb.SIGTRAMP_FRAME
        try:
            frame = frame.older()
        except gdb.error:
            break
    return found


threads = []
for pid in PIDS:
    gdb.execute(f"attach {pid}", to_string=True)
    cache = {}
    maps = code(pid)
    for thread in gdb.selected_inferior().threads():
        thread.switch()
        threads.append({"pid": pid, "tid": thread.ptid[1], "frames": frames(maps, pid, cache)})
    gdb.execute("detach", to_string=True)
with open(OUT, "w") as out:
    json.dump(threads, out)
