"""Starts seq with its output in a pipe, waits for it to end, and reads then: NUMBERS."""

import subprocess
import sys

child = subprocess.Popen(["seq", sys.argv[1]], stdout=subprocess.PIPE)
child.wait()
child.stdout.read()
