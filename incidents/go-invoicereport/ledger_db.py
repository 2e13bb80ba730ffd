import os, random, socketserver
class H(socketserver.StreamRequestHandler):
    def handle(self):
        for q in self.rfile:
            kind, region = q.decode().split()
            out = []
            for i in range(12):
                cur = 'CHF' if kind == 'overdue' and region == 'alpine' and i == 7 else 'EUR'
                out.append('cust%03d|%d|%s\n' % (random.randint(1, 40), random.randint(100, 90000), cur))
            out.append('.\n')
            self.wfile.write(''.join(out).encode())
class S(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
S(os.environ['RUN'] + '/ledger.sock', H).serve_forever()
