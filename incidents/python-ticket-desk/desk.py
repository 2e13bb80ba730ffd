"""Takes tickets over HTTP and notes each in a journal that is written in the background."""
import http.server
import os
import queue
import threading

RUN = os.environ["RUN"]


class Journal:
    """Entries wait in memory until the writer has time for them."""

    def __init__(self, path):
        self.path = path
        self.entries = queue.Queue(maxsize=20)
        threading.excepthook = lambda failed: None
        threading.Thread(target=self.write, name="journal", daemon=True).start()

    def note(self, entry):
        if not entry:
            return
        self.entries.put(entry)

    def write(self):
        with open(self.path, "w", encoding="ascii") as out:
            while True:
                out.write(self.entries.get() + "\n")
                out.flush()


JOURNAL = Journal(RUN + "/journal")


class Desk(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        text = self.rfile.read(int(self.headers["Content-Length"])).decode()
        JOURNAL.note(text)
        self.send_response(201)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Desk)
with open(RUN + "/port.new", "w") as out:
    out.write(str(server.server_address[1]))
os.rename(RUN + "/port.new", RUN + "/port")
server.serve_forever()
