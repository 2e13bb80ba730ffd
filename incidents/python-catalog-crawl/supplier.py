"""Supplier's shop: product pages; some products have no price ("on request")."""
import http.server, os
class Shop(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        n = int(self.path.rsplit("/", 1)[1])
        price = "" if "nordlicht" in self.path and n % 40 == 7 else '<script>{"price": "%d.90"}</script>' % n
        body = f"<html><title>Article {n}</title>{price}</html>".encode()
        self.send_response(200); self.send_header("Content-Length", str(len(body))); self.end_headers()
        self.wfile.write(body)
    def log_message(self, *a): pass
s = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Shop)
open(os.environ["RUN"] + "/shop.tmp", "w").write("127.0.0.1:%d" % s.server_port)
os.rename(os.environ["RUN"] + "/shop.tmp", os.environ["RUN"] + "/shop")
s.serve_forever()
