# Writes orders, slowly or at once.
import sys
import time

delay = float(sys.argv[1])
for number in range(4):
    time.sleep(delay)
    print(f"order {number}", flush=True)
