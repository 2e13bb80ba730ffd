"""A service that logs over TCP: sends lines, waits while it cannot, and goes on.

Arguments: the port of the log server on this machine. Prints "full" once it could not send for half a second, and "sent" once 20,000 lines are sent.
"""

import select
import socket
import sys

LINE = b"<13>Nov 30 09:00:00 host app: an order was taken, and this line is as long as such lines are in ordinary services\n"

connection = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
connection.setblocking(False)
sent = 0
said = set()


def say(word):
    if word not in said:
        said.add(word)
        print(word, flush=True)


rest = b""
while True:
    rest = rest or LINE
    if not select.select([], [connection], [], 0.5)[1]:
        say("full")
        continue
    rest = rest[connection.send(rest) :]
    sent += not rest
    if sent == 20_000:
        say("sent")
        select.select([], [], [], 0.2)
        sent = 0
