"""Shipping quote gateway: asyncio HTTP front, one currency provider behind it."""
import asyncio
import json
import os
import urllib.request

RUN = os.environ["RUN"]
RATES_URL = os.environ["RATES_URL"]
BASE_FEES = {"parcel": 4.90, "pallet": 62.0, "letter": 1.10}


class Metrics:
    def __init__(self):
        self.requests = 0
        self.quotes = 0

    async def flush_forever(self):
        while True:
            with open(os.path.join(RUN, "metrics.prom"), "w") as fh:
                fh.write("gateway_requests_total %d\ngateway_quotes_total %d\n" % (self.requests, self.quotes))
            await asyncio.sleep(1)


class RateBook:
    def __init__(self, url):
        self.url = url
        self.cache = {"EUR": 1.0}

    def fetch(self, currency):
        request = urllib.request.Request("%s/latest/%s" % (self.url, currency),
                                         headers={"Accept": "application/json"})
        with urllib.request.urlopen(request) as reply:
            return json.loads(reply.read())["rate"]

    async def rate(self, currency):
        if currency not in self.cache:
            self.cache[currency] = self.fetch(currency)
        return self.cache[currency]


class Gateway:
    def __init__(self):
        self.metrics = Metrics()
        self.rates = RateBook(RATES_URL)

    async def quote(self, kind, currency):
        rate = await self.rates.rate(currency)
        self.metrics.quotes += 1
        return {"kind": kind, "currency": currency, "price": round(BASE_FEES[kind] * rate, 2)}

    async def route(self, path):
        parts = [p for p in path.split("/") if p]
        if parts == ["healthz"]:
            return 200, {"status": "ok"}
        if len(parts) == 3 and parts[0] == "quote" and parts[1] in BASE_FEES:
            return 200, await self.quote(parts[1], parts[2])
        return 404, {"error": "no such route"}

    async def serve(self, reader, writer):
        try:
            request_line = (await reader.readline()).decode("latin-1").split()
            while (await reader.readline()).strip():
                pass
            self.metrics.requests += 1
            status, doc = await self.route(request_line[1])
            body = json.dumps(doc).encode()
            writer.write(b"HTTP/1.0 %d X\r\nContent-Length: %d\r\n\r\n" % (status, len(body)) + body)
            await writer.drain()
        finally:
            writer.close()


async def main():
    gateway = Gateway()
    server = await asyncio.start_server(gateway.serve, "127.0.0.1", 0)
    with open(os.path.join(RUN, "port"), "w") as fh:
        fh.write(str(server.sockets[0].getsockname()[1]))
    asyncio.create_task(gateway.metrics.flush_forever())
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
