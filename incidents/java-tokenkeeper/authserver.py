import os, socket
s = socket.socket()
s.bind(('127.0.0.1', 0))
s.listen(16)
run = os.environ['RUN']
with open(run + '/auth.port.tmp', 'w') as f:
    f.write(str(s.getsockname()[1]))
os.rename(run + '/auth.port.tmp', run + '/auth.port')
issued, held = 0, []
while True:
    c, _ = s.accept()
    c.recv(1024)
    if issued < 1:
        issued += 1
        c.sendall(b'HTTP/1.0 200 OK\r\n\r\ntok-%06d\r\n' % issued)
        c.close()
    else:
        held.append(c)
