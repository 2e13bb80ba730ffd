"""Answers on port 8125, one thread a connection; every twentieth request takes the lock. When it is told to end it writes
how long its requests took, and how much of that was the lock."""
import fcntl
import http.server
import json
import signal
import sys
import threading
import time

path, truth = sys.argv[1:]
lock = threading.Lock()
requests = waited = elapsed = 0


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # One write an answer: the request ends with the whole of it.
    wbufsize = -1

    def do_GET(self):
        global requests, waited, elapsed
        began = time.monotonic_ns()
        with lock:
            requests += 1
            takes_the_lock = requests % 20 == 0
        here = 0
        if takes_the_lock:
            with open(path, "w") as file:
                before = time.monotonic_ns()
                fcntl.flock(file, fcntl.LOCK_EX)
                here = time.monotonic_ns() - before
        self.send_response(200)
        self.send_header("Content-Length", "3")
        self.end_headers()
        self.wfile.write(b"ok\n")
        self.wfile.flush()
        with lock:
            waited += here
            elapsed += time.monotonic_ns() - began

    def log_message(self, *_):
        pass


def end(*_):
    with open(truth, "a") as file:
        file.write(json.dumps({"waited_ns": waited, "elapsed_ns": max(elapsed, 1)}) + "\n")
    # Threads still wait for the lock.
    import os

    os._exit(0)


server = http.server.ThreadingHTTPServer(("127.0.0.1", 8125), Handler)
signal.signal(signal.SIGTERM, end)
with open(3, "w") as ready:
    ready.write("ready\n")
server.serve_forever()
