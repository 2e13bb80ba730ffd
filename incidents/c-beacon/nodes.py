import os, random, socket, time
port = int(open(os.environ['RUN'] + '/beacon.port').read())
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(5)
while True:
    s.sendto(('rack%02d' % random.randint(1, 20)).encode(), ('127.0.0.1', port))
    s.recv(16)
    time.sleep(random.uniform(0.1, 0.6))
