"""Keeps the assets of the current release in the page cache."""
import glob
import os
import sys
import time

while True:
    for name in glob.glob(os.path.join(sys.argv[1], "public", "*.css")):
        with open(name, "rb") as fh:
            fh.read()
    time.sleep(5)
