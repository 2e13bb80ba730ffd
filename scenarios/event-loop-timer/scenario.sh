# The event loop awaits nothing but the socket by which it wakes itself. The twin sleeps for no time.
setup() { :; }
loop='import asyncio, sys
asyncio.run(asyncio.sleep(float(sys.argv[1])))'
stall() { observe "${timed[@]}" python3 -c "$loop" 1; }
healthy() { observe "${timed[@]}" python3 -c "$loop" 0; }
