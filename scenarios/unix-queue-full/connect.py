"""Connects once; opens the gate first."""

import os
import socket
import sys

if sys.argv[1] == "late":
    with open(os.environ["STAGE"] + "/go", "w", encoding="ascii") as gate:
        gate.write("go\n")
socket.socket(socket.AF_UNIX).connect(os.environ["STAGE"] + "/server.sock")
