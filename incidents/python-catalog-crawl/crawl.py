"""Nightly catalogue crawl: fetches product pages from the suppliers, writes one JSON line per product."""
import asyncio
import json
import os
import re
import sys
import time

PRICE = re.compile(r'"price":\s*"?([0-9.]+)')
TITLE = re.compile(r"<title>(.*?)</title>")


class Progress:
    def __init__(self):
        self.fetched = self.skipped = 0
        self.begin = time.monotonic()

    def line(self):
        rate = self.fetched / max(0.1, time.monotonic() - self.begin)
        return f"fetched={self.fetched} skipped={self.skipped} rate={rate:.1f}/s"


async def fetch(host, port, path):
    reader, writer = await asyncio.open_connection(host, port)
    writer.write(f"GET {path} HTTP/1.0\r\nHost: {host}\r\n\r\n".encode())
    raw = await asyncio.wait_for(reader.read(), 10)
    writer.close()
    head, _, body = raw.partition(b"\r\n\r\n")
    return int(head.split()[1]), body.decode()


def parse_product(path, body):
    title, price = TITLE.search(body), PRICE.search(body)
    if not title or not price:
        raise ValueError(f"no price on {path}")
    return {"path": path, "title": title.group(1), "price": float(price.group(1))}


async def product_worker(pages, out, progress, host, port):
    while True:
        path = await pages.get()
        try:
            status, body = await fetch(host, port, path)
            product = parse_product(path, body)
        except (OSError, ValueError, asyncio.TimeoutError):
            progress.skipped += 1
            continue
        out.write(json.dumps(product) + "\n")
        progress.fetched += 1
        pages.task_done()


async def report(progress):
    while True:
        await asyncio.sleep(2)
        print(progress.line(), flush=True)


async def crawl_supplier(supplier, host, port, progress):
    pages = asyncio.Queue(maxsize=50)
    with open(os.path.join(os.environ["RUN"], supplier + ".jsonl"), "w") as out:
        workers = [asyncio.create_task(product_worker(pages, out, progress, host, port),
                                       name=f"{supplier}-{n}") for n in range(4)]
        for number in range(1, 121):
            await pages.put(f"/{supplier}/p/{number}")
        await pages.join()
        for worker in workers:
            worker.cancel()
    os.rename(out.name, out.name + ".done")


async def main():
    host, port = sys.argv[1].split(":")
    progress = Progress()
    ticker = asyncio.create_task(report(progress), name="report")
    for supplier in ("albrecht", "nordlicht", "weber"):
        await crawl_supplier(supplier, host, int(port), progress)
        print(supplier, "done", flush=True)
    ticker.cancel()


if __name__ == "__main__":
    asyncio.run(main())
