# Copies a file to another descriptor inside the kernel: `send.py CALL FILE`, with CALL sendfile, splice or copy_file_range. The other end is read at
# once, or is a file in memory.
import os
import sys
import threading

PIECE = 65536
call, path = sys.argv[1:]
source = os.open(path, os.O_RDONLY)


def drain(end):
    while os.read(end, PIECE):
        pass


def copy_to_pipe(move):
    reader, writer = os.pipe()
    thread = threading.Thread(target=drain, args=(reader,))
    thread.start()
    while move(writer):
        pass
    os.close(writer)
    thread.join()


if call == "sendfile":
    copy_to_pipe(lambda writer: os.sendfile(writer, source, None, PIECE))
elif call == "splice":
    copy_to_pipe(lambda writer: os.splice(source, writer, PIECE))
else:
    target = os.open(path + ".copy", os.O_WRONLY | os.O_CREAT, 0o600)
    while os.copy_file_range(source, target, PIECE):
        pass
