"""Asks one thing after the other, for as long as it lives: some hundreds a second."""
import socket
import time

with open(3, "w") as ready:
    ready.write("ready\n")
while True:
    with socket.create_connection(("127.0.0.1", 8125)) as connection:
        for _ in range(50):
            connection.sendall(b"GET /checkout?basket=7 HTTP/1.1\r\nHost: shop\r\n\r\n")
            answer = b""
            while not answer.endswith(b"ok\n"):
                answer += connection.recv(4096)
            time.sleep(0.001)
