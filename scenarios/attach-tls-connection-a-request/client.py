"""Asks over TLS on port 8443, one thing after the other, for as long as it lives: client.py anew|keep CERTIFICATE TRUTH. When it is told
to end it writes how long it took, and how much of that were connecting and shaking hands."""
import hashlib
import http.client
import json
import signal
import ssl
import sys
import time

how, certificate, truth = sys.argv[1:]
making = 0
context = ssl.create_default_context()
context.check_hostname = False
context.verify_mode = ssl.CERT_NONE
context.load_cert_chain(certificate)


def connect():
    global making
    began = time.monotonic_ns()
    connection = http.client.HTTPSConnection("127.0.0.1", 8443, context=context)
    connection.connect()
    making += time.monotonic_ns() - began
    return connection


def ask(connection):
    # What the answers are for: a client that did nothing of its own would rightly be said to wait for its server.
    hashlib.pbkdf2_hmac("sha256", b"stock", b"salt", 40000)
    connection.request("GET", "/stock")
    connection.getresponse().read()


def end(*_):
    with open(truth, "a") as file:
        elapsed = time.monotonic_ns() - began
        file.write(json.dumps({"waited_ns": making, "elapsed_ns": elapsed}) + "\n")
    sys.exit(0)


connection = connect()
ask(connection)
signal.signal(signal.SIGTERM, end)
with open(3, "w") as ready:
    ready.write("ready\n")
began, making = time.monotonic_ns(), 0
while True:
    if how == "anew":
        connection.close()
        connection = connect()
    ask(connection)
