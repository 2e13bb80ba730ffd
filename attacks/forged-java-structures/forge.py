"""forge.py MODE FOLDER: starts a Java virtual machine that sleeps, stops it, and forges what it tells debuggers of itself.

stride  the table of its structures has entries of no size, so it never ends
length  its list of threads has 2^31 - 1 entries
cycle   every pointer of its thread structures leads back to the structure
noise   every second word of its thread structures and of its list of threads is random
"""
import os
import random
import re
import signal
import struct
import subprocess
import sys
import time

PROGRAM = """
public class Waits {
    static final Object LOCK = new Object();
    static void hold() throws Exception { synchronized (LOCK) { Thread.sleep(1_000_000_000L); } }
    static void want() { synchronized (LOCK) { System.out.println(); } }
    public static void main(String[] words) throws Exception {
        new Thread(() -> { try { hold(); } catch (Exception e) { } }, "holder").start();
        Thread.sleep(500);
        new Thread(Waits::want, "wanter").start();
        Thread.sleep(500);
        System.out.println("waits");
        System.out.flush();
        Thread.sleep(1_000_000_000L);
    }
}
"""


class Machine:
    """Memory of a virtual machine, and the tables in its library."""

    def __init__(self, pid):
        self.memory = os.open(f"/proc/{pid}/mem", os.O_RDWR)
        with open(f"/proc/{pid}/maps") as lines:
            mapped = [line.split() for line in lines if line.rstrip().endswith("/libjvm.so")]
        self.base = int(mapped[0][0].split("-")[0], 16)
        listed = subprocess.run(["readelf", "-Ws", "--dyn-syms", mapped[0][-1]], capture_output=True, text=True, check=True)
        self.symbols = {}
        for line in listed.stdout.splitlines():
            found = re.match(r"\s*\d+: ([0-9a-f]+)\s+\d+ OBJECT .* (gHotSpotVM\w+)", line)
            if found:
                self.symbols[found[2]] = self.base + int(found[1], 16)

    def word(self, at):
        return struct.unpack("<Q", os.pread(self.memory, 8, at))[0]

    def put(self, at, content):
        os.pwrite(self.memory, content, at)

    def text(self, at):
        return os.pread(self.memory, 100, at).split(b"\0")[0].decode() if at else ""

    def table(self, name, kind):
        """Addresses of the entries of a table."""
        at = self.word(self.symbols[name])
        stride = self.word(self.symbols[f"{kind}ArrayStride"])
        while self.word(at):
            yield at
            at += stride

    def field(self, type_name, field_name):
        """Offset and static address of a field."""
        kind = "gHotSpotVMStructEntry"
        offsets = [self.word(self.symbols[f"{kind}{part}Offset"]) for part in ("TypeName", "FieldName", "Offset", "Address")]
        for entry in self.table("gHotSpotVMStructs", kind):
            names = [self.text(self.word(entry + offset)) for offset in offsets[:2]]
            if names == [type_name, field_name]:
                return [self.word(entry + offset) for offset in offsets[2:]]
        sys.exit(f"no field {type_name}.{field_name}")

    def size(self, type_name):
        kind = "gHotSpotVMTypeEntry"
        name, size = (self.word(self.symbols[f"{kind}{part}Offset"]) for part in ("TypeName", "Size"))
        for entry in self.table("gHotSpotVMTypes", kind):
            if self.text(self.word(entry + name)) == type_name:
                return self.word(entry + size)
        sys.exit(f"no type {type_name}")


def forge(machine, mode):
    if mode == "stride":
        machine.put(machine.symbols["gHotSpotVMStructEntryArrayStride"], struct.pack("<Q", 0))
        return
    threads_list = machine.word(machine.field("ThreadsSMRSupport", "_java_thread_list")[1])
    length_at = threads_list + machine.field("ThreadsList", "_length")[0]
    threads_at = machine.word(threads_list + machine.field("ThreadsList", "_threads")[0])
    length = machine.word(length_at) & 0xFFFFFFFF
    threads = [machine.word(threads_at + 8 * number) for number in range(length)]
    size = machine.size("JavaThread")
    if mode == "length":
        machine.put(length_at, struct.pack("<I", (1 << 31) - 1))
        return
    choice = random.Random(17)
    for thread in threads:
        words = list(struct.unpack(f"<{size // 8}Q", os.pread(machine.memory, size // 8 * 8, thread)))
        for place, word in enumerate(words):
            if mode == "cycle" and word > 1 << 20:
                words[place] = thread
            elif mode == "noise" and place % 2:
                words[place] = choice.choice([choice.getrandbits(64), choice.choice(threads) + 8 * choice.randrange(64), 0])
        machine.put(thread, struct.pack(f"<{len(words)}Q", *words))
    if mode == "noise":
        machine.put(length_at, struct.pack("<I", choice.getrandbits(31)))


def main():
    mode, folder = sys.argv[1:]
    source = os.path.join(folder, "Waits.java")
    with open(source, "w") as file:
        file.write(PROGRAM)
    java = subprocess.Popen(["java", "-Xmx64m", source], stdout=subprocess.PIPE)
    if java.stdout.readline() != b"waits\n":
        sys.exit("the virtual machine does not start")
    time.sleep(0.2)
    # Else it reads its own structures, and crashes.
    java.send_signal(signal.SIGSTOP)
    forge(Machine(java.pid), mode)
    os.write(3, b"ready %d\n" % java.pid)
    os.close(3)
    java.wait()


main()
