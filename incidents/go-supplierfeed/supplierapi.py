"""Stand-in of the supplier's offer API: answers at once; every ninth article is gone."""
import http.server, json, os
class Api(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    def do_GET(self):
        sku = self.path.rsplit('/', 1)[1]; n = int(sku[3:])
        if n % 9 == 8: code, doc = 404, {'error': 'article_withdrawn', 'sku': sku, 'detail': 'see replacement list ' * 300}
        else: code, doc = 200, {'sku': sku, 'cents': 100 + n * 7, 'stock': n % 13}
        b = json.dumps(doc).encode()
        self.send_response(code); self.send_header('Content-Type', 'application/json')
        self.send_header('Content-Length', str(len(b))); self.end_headers(); self.wfile.write(b)
    def log_message(self, *a): pass
s = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Api); s.daemon_threads = True
open(os.environ['RUN'] + '/supplier.port', 'w').write(str(s.server_port)); s.serve_forever()
