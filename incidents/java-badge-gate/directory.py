import os
import socket

RUN = os.environ["RUN"]
held = []
listener = socket.create_server(("127.0.0.1", 0))
with open(RUN + "/directory.new", "w") as out:
    out.write(str(listener.getsockname()[1]))
os.rename(RUN + "/directory.new", RUN + "/directory.port")
while True:
    held.append(listener.accept()[0])
