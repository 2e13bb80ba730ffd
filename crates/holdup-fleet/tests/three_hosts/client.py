"""Asks the front again and again."""

import http.client

front = http.client.HTTPConnection("10.0.1.5", 80)
while True:
    front.request("GET", "/")
    front.getresponse().read()
