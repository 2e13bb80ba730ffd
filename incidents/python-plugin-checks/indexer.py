"""Runs the acceptance checks of every plugin in the catalogue and writes an index."""
import json
import logging
import os
import subprocess
import sys
import threading
import time

log = logging.getLogger("indexer")
HERE = os.path.dirname(os.path.abspath(__file__))

CATALOGUE = [
    {"name": "dns-zone-audit", "version": "1.4.2", "cases": 60},
    {"name": "modbus-parser", "version": "0.9.0", "cases": 2600},
    {"name": "tls-fingerprint", "version": "2.0.1", "cases": 80},
]


class Progress:
    def __init__(self, path):
        self.path = path
        self.done = 0
        self.current = None

    def save(self):
        tmp = self.path + ".new"
        with open(tmp, "w") as fh:
            json.dump({"done": self.done, "current": self.current, "at": time.time()}, fh)
        os.replace(tmp, self.path)


def heartbeat(progress):
    while True:
        progress.save()
        time.sleep(2)


class CheckRunner:
    def __init__(self, logdir):
        self.logdir = logdir
        os.makedirs(logdir, exist_ok=True)

    def command(self, plugin):
        return [sys.executable, "-B", os.path.join(HERE, "run_suite.py"),
                plugin["name"], str(plugin["cases"])]

    def save_stream(self, stream, path):
        size = 0
        with open(path, "wb") as out:
            while True:
                chunk = stream.read(4096)
                if not chunk:
                    break
                size += len(chunk)
                out.write(chunk)
        return size

    def run(self, plugin):
        base = os.path.join(self.logdir, plugin["name"])
        proc = subprocess.Popen(self.command(plugin), stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE)
        errs = self.save_stream(proc.stderr, base + ".err")
        outs = self.save_stream(proc.stdout, base + ".out")
        rc = proc.wait()
        log.info("%s %s rc=%s out=%d err=%d", plugin["name"], plugin["version"], rc, outs, errs)
        return {"plugin": plugin["name"], "ok": rc == 0, "out": outs, "err": errs}


def build_index(run_dir):
    progress = Progress(os.path.join(run_dir, "progress.json"))
    threading.Thread(target=heartbeat, args=(progress,), daemon=True, name="progress").start()
    runner = CheckRunner(os.path.join(run_dir, "logs"))
    results = []
    for plugin in CATALOGUE:
        progress.current = plugin["name"]
        results.append(runner.run(plugin))
        progress.done += 1
    with open(os.path.join(run_dir, "index.json"), "w") as fh:
        json.dump(results, fh, indent=1)
    return results


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s",
                        filename=os.path.join(os.environ["RUN"], "indexer.log"))
    build_index(os.environ["RUN"])
