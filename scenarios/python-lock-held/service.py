# An HTTP service with a thread for each connection, four workers that are parked, and an export in the background that keeps a
# lock until it is told to go on, which nobody does: `service.py PORT`. `/order` needs that lock. Says "ready" on descriptor 3 when the export has it.
import http.server
import os
import queue
import sys
import threading

orders = threading.Lock()
jobs = queue.Queue()
told_to_go_on = threading.Event()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        if self.path == "/order":
            with orders:
                pass
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"5\n")

    def log_message(self, *words):
        pass


def export():
    with orders:
        os.write(3, b"ready\n")
        told_to_go_on.wait()


def work():
    while True:
        jobs.get()()


for number in range(4):
    threading.Thread(target=work, daemon=True).start()
server = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
threading.Thread(target=export, daemon=True).start()
server.serve_forever()
