"""Plays the reverse proxy: twenty forward-auth questions a second, each given up after two seconds."""
import hmac, hashlib, os, socket, threading, time
run = os.environ['RUN']; key = os.environ['EDGEAUTH_KEY'].encode()
def ask(n):
    sub = 'user%02d' % (n % 30); tok = sub + '.' + hmac.new(key, sub.encode(), hashlib.sha256).hexdigest()
    s = socket.socket(socket.AF_UNIX); s.settimeout(2)
    try:
        s.connect(run + '/edgeauth.sock')
        s.sendall(('GET /auth HTTP/1.1\r\nHost: auth\r\nConnection: close\r\nX-Forwarded-Uri: /shop/%d\r\nUser-Agent: Mozilla/5.0\r\nCookie: basket=%s\r\nAuthorization: Bearer %s\r\n\r\n' % (n, 'c3f9' * 500, tok)).encode())
        s.recv(4096)
    except OSError: pass
    finally: s.close()
n = 0
while True:
    n += 1; threading.Thread(target=ask, args=(n,), daemon=True).start(); time.sleep(.05 if n < 120 else .25)
