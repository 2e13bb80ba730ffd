import http.client, os, random, time
port = int(open(os.environ['RUN'] + '/http.port').read())
n = 0
while True:
    n += 1
    c = http.client.HTTPConnection('127.0.0.1', port, timeout=10)
    c.request('POST', '/letters', 'K%03d dear customer number %d' % (n % 40, n))
    c.getresponse().read()
    c.close()
    time.sleep(random.uniform(0.4, 1.2))
