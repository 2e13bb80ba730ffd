"""Tills of a shop asking for the names they need, each four times a second."""
import random, socket, struct, sys, threading, time
to = ("127.0.0.1", int(sys.argv[1]))
def name(n): return b"".join(bytes([len(x)]) + x.encode() for x in n.split(".")) + b"\0"
def till(no):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(1); n = 0
    while True:
        n += 1
        s.sendto(struct.pack(">6H", random.randrange(65536), 256, 1, 0, 0, 0) + name("api%d.till%d.pay.example" % (n, no)) + struct.pack(">2H", 1, 1), to)
        try: s.recv(1500); time.sleep(.25)
        except OSError: pass
for i in range(8): threading.Thread(target=till, args=(i,), daemon=True).start()
while True: time.sleep(9)
