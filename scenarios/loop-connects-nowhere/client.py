"""Connects to HOST PORT from an event loop that has a heartbeat, and gives up after SECONDS."""

import asyncio
import sys


async def heartbeat():
    while True:
        await asyncio.sleep(0.02)


async def fetch_prices(host, port, seconds):
    beating = asyncio.create_task(heartbeat())
    try:
        _, writer = await asyncio.wait_for(asyncio.open_connection(host, port), seconds)
        writer.close()
    except (OSError, asyncio.TimeoutError):
        pass
    beating.cancel()


asyncio.run(fetch_prices(sys.argv[1], int(sys.argv[2]), float(sys.argv[3])))
