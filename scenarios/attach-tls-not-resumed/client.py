"""Asks over TLS on port 8443, one thing after the other, for as long as it lives, over each connection until the server closes
it: client.py forget|resume CERTIFICATE TRUTH. When it is told to end it writes how long it took, and how much of that was connecting and
shaking hands."""
import hashlib
import json
import signal
import socket
import ssl
import sys
import time

REQUESTS = 2
how, certificate, truth = sys.argv[1:]
making = 0
session = None
context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
context.check_hostname = False
context.verify_mode = ssl.CERT_NONE
context.load_cert_chain(certificate)


def connect():
    global making
    began = time.monotonic_ns()
    plain = socket.create_connection(("127.0.0.1", 8443))
    plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection = context.wrap_socket(plain, session=session if how == "resume" else None)
    making += time.monotonic_ns() - began
    return connection


def ask(connection):
    # What the answers are for: a client that did nothing of its own would rightly be said to wait for its server.
    hashlib.pbkdf2_hmac("sha256", b"stock", b"salt", 23000)
    connection.sendall(b"GET /stock HTTP/1.1\r\nHost: shop\r\n\r\n")
    answer = b""
    while not answer.endswith(b"ok\n"):
        answer += connection.recv(4096)


def ask_all():
    global session
    connection = connect()
    for _ in range(REQUESTS):
        ask(connection)
    session = connection.session
    connection.close()


def end(*_):
    with open(truth, "a") as file:
        elapsed = time.monotonic_ns() - began
        file.write(json.dumps({"waited_ns": making, "elapsed_ns": elapsed}) + "\n")
    sys.exit(0)


ask_all()
signal.signal(signal.SIGTERM, end)
with open(3, "w") as ready:
    ready.write("ready\n")
began, making = time.monotonic_ns(), 0
while True:
    ask_all()
