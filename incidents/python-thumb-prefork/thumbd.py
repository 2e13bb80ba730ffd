"""Preforking thumbnail planner. The parent keeps the preset catalogue fresh, workers plan jobs."""
import os
import random
import signal
import sys
import threading
import time

RUN = os.environ["RUN"]


def note(msg):
    with open(os.path.join(RUN, "thumbd.log"), "a") as fh:
        fh.write("%.3f [%d] %s\n" % (time.time(), os.getpid(), msg))


class PresetCatalogue:
    """Sizes and qualities for each tenant; re-read from the preset files every few seconds."""

    def __init__(self):
        self._guard = threading.Lock()
        self._presets = {}
        self.generation = 0

    def _read_tenant(self, tenant):
        time.sleep(0.06)
        rnd = random.Random(tenant)
        return {"w": rnd.choice((120, 240, 480)), "h": rnd.choice((90, 180, 360)), "q": 82}

    def reload(self):
        with self._guard:
            for tenant in range(25):
                self._presets[tenant] = self._read_tenant(tenant)
            self.generation += 1

    def lookup(self, tenant):
        with self._guard:
            return self._presets.get(tenant, {"w": 64, "h": 64, "q": 70})

    def keep_fresh(self):
        while True:
            self.reload()
            note("presets generation %d" % self.generation)
            time.sleep(4)


class Planner:
    def __init__(self, catalogue, number):
        self.catalogue = catalogue
        self.number = number
        self.planned = 0

    def jobs(self):
        seq = 0
        while True:
            seq += 1
            yield {"id": "%d-%06d" % (self.number, seq), "tenant": seq % 25, "src": (4032, 3024)}

    def plan(self, job):
        preset = self.catalogue.lookup(job["tenant"])
        sw, sh = job["src"]
        scale = min(preset["w"] / sw, preset["h"] / sh)
        return {"id": job["id"], "size": (int(sw * scale), int(sh * scale)), "q": preset["q"]}

    def run(self):
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        note("worker %d up" % self.number)
        for job in self.jobs():
            self.plan(job)
            self.planned += 1
            if self.planned % 100 == 0:
                note("worker %d planned %d" % (self.number, self.planned))
            time.sleep(0.02)


def spawn(catalogue, number):
    pid = os.fork()
    if pid == 0:
        try:
            Planner(catalogue, number).run()
        finally:
            os._exit(0)
    return pid


def main():
    catalogue = PresetCatalogue()
    threading.Thread(target=catalogue.keep_fresh, name="preset-refresher", daemon=True).start()
    time.sleep(0.5)
    workers = [spawn(catalogue, n) for n in range(2)]
    with open(os.path.join(RUN, "pid"), "w") as fh:
        fh.write(str(workers[0]))
    while True:
        time.sleep(1)
        for pid in list(workers):
            done, _ = os.waitpid(pid, os.WNOHANG)
            if done:
                workers.remove(pid)
                workers.append(spawn(catalogue, len(workers)))


if __name__ == "__main__":
    main()
