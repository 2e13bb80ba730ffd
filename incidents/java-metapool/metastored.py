"""The metastore: the full listing takes two seconds, single tables a few milliseconds."""
import os, socketserver, time
class H(socketserver.StreamRequestHandler):
    def handle(self):
        for line in self.rfile:
            t = line.split()[1].decode(); time.sleep(2.2 if t == '*' else .004); self.wfile.write(b'%s 2026-11-01..2026-11-28\n' % t.encode())
class S(socketserver.ThreadingTCPServer): daemon_threads = True
s = S(('127.0.0.1', 0), H); open(os.environ['RUN'] + '/metastore.port', 'w').write(str(s.server_address[1])); s.serve_forever()
