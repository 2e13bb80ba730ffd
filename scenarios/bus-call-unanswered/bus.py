"""A message bus with one client: greets it, and then answers its call or keeps silent (argument `silent`)."""

import os
import socket
import struct
import sys


def field(code, kind, value):
    """A header field, a structure aligned to 8, with a string or a number as its value."""
    name = bytes([len(kind)]) + kind + b"\0"
    if kind == b"u":
        return bytes([code]) + name + struct.pack("<I", value)
    if kind == b"g":
        return bytes([code]) + name + bytes([len(value)]) + value + b"\0"
    return bytes([code]) + name + struct.pack("<I", len(value)) + value + b"\0"


def padded(data, to=8):
    return data + b"\0" * (-len(data) % to)


def answer(to, body, signature):
    """The answer to the call with the serial number `to`."""
    fields = padded(field(5, b"u", to)) + padded(field(7, b"s", b"org.freedesktop.DBus"))
    fields += field(8, b"g", signature)
    head = struct.pack("<cBBBIII", b"l", 2, 1, 1, len(body), to, len(fields))
    return padded(head + fields) + body


server = socket.socket(socket.AF_UNIX)
server.bind("/run/dbus/system_bus_socket")
server.listen()
os.write(3, b"ready\n")
os.close(3)
client, _ = server.accept()
lines = client.makefile("rb")
while (line := lines.readline().strip(b"\0\r\n")) != b"BEGIN":
    if line.startswith(b"AUTH EXTERNAL"):
        client.sendall(b"OK 0123456789abcdef0123456789abcdef\r\n")
    elif line.startswith(b"NEGOTIATE_UNIX_FD"):
        client.sendall(b"AGREE_UNIX_FD\r\n")
    else:
        client.sendall(b"REJECTED EXTERNAL\r\n")
while head := lines.read(16):
    body, serial, fields = struct.unpack("<4xIII", head)
    lines.read(fields + -fields % 8 + body)
    if serial == 1:
        client.sendall(answer(serial, struct.pack("<I", 4) + b":1.1\0", b"s"))
    elif sys.argv[1] != "silent":
        client.sendall(answer(serial, struct.pack("<I", 2) + b"ok\0", b"s"))
