import http.client
import os
import threading

RUN = os.environ["RUN"]
PORT = int(open(RUN + "/port").read())


def ask(who):
    desk = http.client.HTTPConnection("127.0.0.1", PORT)
    for number in range(1000):
        text = f"{who} {number}: " + ("Zoë cannot log in" if number == 7 else "printer")
        desk.request("POST", "/tickets", text.encode())
        desk.getresponse().read()


for who in range(4):
    threading.Thread(target=ask, args=(who,)).start()
