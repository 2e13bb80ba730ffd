"""Asks the shop on port 8080, one thing after the other over one connection, for as long as it lives. When it is told to end it says how
many answers it had, and how long they took."""
import http.client
import signal
import sys
import time

connection = http.client.HTTPConnection("127.0.0.1", 8080)
answers = 0


def ask():
    connection.request("GET", "/cart")
    connection.getresponse().read()


def end(*_):
    took = (time.monotonic_ns() - began) / 1e6
    print(f"the customer: {answers} answers in {took / max(1, answers):.3f} ms each", file=sys.stderr)
    sys.exit(0)


ask()
signal.signal(signal.SIGTERM, end)
with open(3, "w") as ready:
    ready.write("ready\n")
began = time.monotonic_ns()
while True:
    ask()
    answers += 1
