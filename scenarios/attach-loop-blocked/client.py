"""Three clients with a connection each, for as long as it lives: two ask for little and often, one for a report."""
import socket
import threading
import time


def ask(path, pause):
    with socket.create_connection(("127.0.0.1", 8126)) as connection:
        while True:
            connection.sendall(b"GET " + path + b" HTTP/1.1\r\nHost: shop\r\n\r\n")
            answer = b""
            while not answer.endswith(b"ok\n"):
                answer += connection.recv(4096)
            time.sleep(pause)


for path, pause in [(b"/cart", 0.002), (b"/cart", 0.002), (b"/report", 0.06)]:
    threading.Thread(target=ask, args=(path, pause), daemon=True).start()
with open(3, "w") as ready:
    ready.write("ready\n")
threading.Event().wait()
