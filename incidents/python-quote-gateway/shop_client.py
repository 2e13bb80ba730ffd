"""The shop: asks for quotes, and the balancer's health probe."""
import os
import socket
import time

port = int(open(os.path.join(os.environ["RUN"], "port")).read())


def ask(path, wait=1.0):
    s = socket.create_connection(("127.0.0.1", port))
    s.settimeout(wait)
    s.sendall(b"GET %s HTTP/1.0\r\n\r\n" % path.encode())
    try:
        return s.recv(1000)
    except socket.timeout:
        return None


ask("/healthz")
ask("/quote/parcel/USD")
time.sleep(0.3)
ask("/quote/pallet/GBP", 1)
while True:
    ask("/healthz", 2)
    time.sleep(1)
