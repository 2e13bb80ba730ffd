# Three parts of a service that passes lines on. `backend PORT MS` answers each line after MS milliseconds, any number at once. `front PORT
# BACKEND LIMIT` passes on at most LIMIT lines at a time, each on a connection that it keeps. `clients PORT MS` are six, each of which asks MS
# milliseconds after its last answer. Each part says "ready" on descriptor 3.
import asyncio
import os
import sys

CLIENTS = 6


async def lines(reader):
    while line := await reader.readline():
        yield line


async def backend(port, delay):
    async def serve(reader, writer):
        async for line in lines(reader):
            await asyncio.sleep(delay / 1000)
            writer.write(line)

    return await asyncio.start_server(serve, "127.0.0.1", port)


async def front(port, behind, limit):
    free = asyncio.Queue()
    for _ in range(limit):
        free.put_nowait(await asyncio.open_connection("127.0.0.1", behind))

    async def serve(reader, writer):
        async for line in lines(reader):
            connection = await free.get()
            connection[1].write(line)
            answer = await connection[0].readline()
            free.put_nowait(connection)
            writer.write(answer)

    return await asyncio.start_server(serve, "127.0.0.1", port)


async def client(port, pause):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    while True:
        writer.write(b"question\n")
        await reader.readline()
        await asyncio.sleep(pause / 1000)


async def main(part, *numbers):
    numbers = [int(number) for number in numbers]
    if part == "clients":
        asking = [asyncio.create_task(client(*numbers)) for _ in range(CLIENTS)]
        os.write(3, b"ready\n")
        await asyncio.gather(*asking)
    else:
        server = await (backend if part == "backend" else front)(*numbers)
        os.write(3, b"ready\n")
        await server.serve_forever()


asyncio.run(main(*sys.argv[1:]))
