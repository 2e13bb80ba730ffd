# Asks for the page again and again, on one connection. Arguments: port, seconds between an answer and the next request. Says "ready" on
# descriptor 3 when a page has come.
import http.client
import os
import sys
import time

port, pause = int(sys.argv[1]), float(sys.argv[2])
connection = http.client.HTTPConnection("127.0.0.1", port)
told = False
while True:
    connection.request("GET", "/page")
    answer = connection.getresponse()
    if answer.status != 200:
        sys.exit(f"the answer is {answer.status}")
    answer.read()
    if not told:
        os.write(3, b"ready\n")
        told = True
    time.sleep(pause)
