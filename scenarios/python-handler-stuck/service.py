# An HTTP service with a thread for each connection and one in the background: `service.py PORT UPSTREAM_PORT`. `/report` asks
# another service. Says "ready" on descriptor 3.
import http.client
import http.server
import os
import sys
import threading

upstream = int(sys.argv[2])


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        if self.path == "/report":
            connection = http.client.HTTPConnection("127.0.0.1", upstream)
            connection.request("GET", "/stock")
            connection.getresponse().read()
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"5\n")

    def log_message(self, *words):
        pass


def look_after():
    stop = threading.Event()
    while not stop.wait(0.5):
        with open(os.devnull, "w") as log:
            log.write("still there\n")


threading.Thread(target=look_after, name="look-after", daemon=True).start()
server = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
os.write(3, b"ready\n")
server.serve_forever()
