# Five clients that ask for a page again and again, each on one connection. Arguments: port, seconds between an answer and the next request. Says
# "ready" on descriptor 3 when each has an answer.
import http.client
import os
import sys
import threading
import time

CLIENTS = 5
port, pause = int(sys.argv[1]), float(sys.argv[2])
answered = threading.Barrier(CLIENTS + 1)


def client():
    connection = http.client.HTTPConnection("127.0.0.1", port)
    told = False
    while True:
        connection.request("GET", "/")
        connection.getresponse().read()
        if not told:
            answered.wait()
            told = True
        time.sleep(pause)


for _ in range(CLIENTS):
    threading.Thread(target=client, daemon=True).start()
answered.wait()
os.write(3, b"ready\n")
time.sleep(1000)
