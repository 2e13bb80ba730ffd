import socket, sys
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); u.bind(("127.0.0.9", int(sys.argv[1])))
while True: u.recvfrom(1500)
