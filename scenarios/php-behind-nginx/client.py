# `client.py PORT PAUSE` asks again and again, PAUSE seconds after each answer; says "ready" on descriptor 3 when one has come.
import http.client
import os
import sys
import time

port, pause = int(sys.argv[1]), float(sys.argv[2])
told = False
while True:
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("GET", "/")
    answer = connection.getresponse()
    if answer.status != 200:
        sys.exit(f"the answer is {answer.status}")
    answer.read()
    connection.close()
    if not told:
        os.write(3, b"ready\n")
        told = True
    time.sleep(pause)
