# A small HTTP server: `backend.py PORT DELAY` answers each request after DELAY seconds. Says "ready" on descriptor 3.
import http.server
import os
import sys
import time


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if delay:
            time.sleep(delay)
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"5\n")

    def log_message(self, *words):
        pass


delay = float(sys.argv[2])
server = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
os.write(3, b"ready\n")
server.serve_forever()
