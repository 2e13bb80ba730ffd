"""Currency provider; GBP comes from an archive that answers slowly."""
import http.server
import os
import time


class Rates(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path.endswith("/GBP"):
            time.sleep(120)
        body = b'{"rate": 1.17}'
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


srv = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Rates)
with open(os.path.join(os.environ["RUN"], "rates.port"), "w") as fh:
    fh.write(str(srv.server_address[1]))
srv.serve_forever()
