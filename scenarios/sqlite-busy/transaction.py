"""Begins a transaction that writes, and ends it a second after the GATE has opened: DATABASE GATE."""

import os
import sqlite3
import sys
import time

database, gate = sys.argv[1:]
connection = sqlite3.connect(database, isolation_level=None)
connection.execute("begin immediate")
os.write(3, b"ready\n")
os.close(3)
with open(gate) as opened:
    opened.readline()
time.sleep(1.0)
connection.execute("commit")
