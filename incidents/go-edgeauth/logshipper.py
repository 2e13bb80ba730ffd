"""Reads the audit trail from stdin and keeps it until the collector takes it."""
import os, socket, sys, time
coll = os.environ['RUN'] + '/collector.sock'
for line in sys.stdin:
    while True:                       # at-least-once: do not read on before the collector has this record
        try:
            s = socket.socket(socket.AF_UNIX); s.connect(coll); s.sendall(line.encode()); s.close(); break
        except OSError: time.sleep(1)
