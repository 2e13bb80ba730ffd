"""Runs a command with a terminal of its own, as a root shell does, and says whether somebody typed into that.

shell_terminal.py OUT COMMAND ARG…: what the command writes goes to OUT.seen, the result to OUT.terminal.
"""

import array
import fcntl
import os
import pty
import sys
import termios
import threading

out, command = sys.argv[1], sys.argv[2:]
master, slave = pty.openpty()
# Keys are counted as they come, not by the line; and nothing is echoed.
mode = termios.tcgetattr(slave)
mode[3] &= ~(termios.ICANON | termios.ECHO)
termios.tcsetattr(slave, termios.TCSANOW, mode)
# Who has this pipe open is alive: the command and whatever it leaves behind.
alive, keeps_alive = os.pipe()

child = os.fork()
if child == 0:
    os.setsid()
    fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
    for number in (0, 1, 2):
        os.dup2(slave, number)
    os.execv(command[0], command)


def pass_on():
    """Takes what is written to the terminal, so that nobody waits for it."""
    with open(out + ".seen", "wb") as seen:
        while True:
            try:
                data = os.read(master, 4096)
            except OSError:
                return
            seen.write(data)
            seen.flush()


threading.Thread(target=pass_on, daemon=True).start()
_, status = os.waitpid(child, 0)
waiting = array.array("i", [0])
# The one that outlives the command goes on for half a second: look for a second.
for _ in range(100):
    fcntl.ioctl(slave, termios.FIONREAD, waiting)
    if waiting[0]:
        break
    threading.Event().wait(0.01)
with open(out + ".terminal", "w") as result:
    if waiting[0]:
        result.write(f"pushed {os.read(slave, 200)!r}\n")
    result.write(f"status {status}\n")
