import http.client
import os
import threading

RUN = os.environ["RUN"]
PORT = int(open(RUN + "/gate.port").read())


def show(badge):
    gate = http.client.HTTPConnection("127.0.0.1", PORT)
    gate.request("GET", f"/open?{badge}")
    gate.getresponse().read()


for badge in range(3):
    threading.Thread(target=show, args=(badge,)).start()
