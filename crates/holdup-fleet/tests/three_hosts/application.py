"""Asks the database for each request, on a connection that each thread keeps."""

import http.server
import socket


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    database = None

    def do_GET(self):
        if self.database is None:
            self.database = socket.create_connection(("10.0.4.17", 5432))
        self.database.sendall(b"question\n")
        row = self.database.recv(100)
        self.send_response(200)
        self.send_header("Content-Length", str(len(row)))
        self.end_headers()
        self.wfile.write(row)

    def log_message(self, *_):
        pass


http.server.ThreadingHTTPServer(("10.0.2.8", 8080), Handler).serve_forever()
