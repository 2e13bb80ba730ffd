"""Runs the queries of a page on a directory of recordings, and holds what they say against a report.

In: the page, the directory, the report of the one recording in it. Out: a line a query; the status says whether all agree.
"""
import json
import re
import sys
from collections import Counter

import duckdb

page, recordings, report = sys.argv[1:]
with open(page, encoding="utf-8") as file:
    blocks = dict(re.findall(r"```\w+ (\w+)\n(.*?)```", file.read(), re.S))
with open(report, encoding="utf-8") as file:
    waits = json.load(file)["waits"]

by_cause, by_process = Counter(), Counter()
for wait in waits:
    by_cause[wait["cause"]] += wait["ns"]
    by_process[wait["asker"]["process"], wait["cause"]] += wait["ns"]
by_cause.pop("idle", None)


def sql(code):
    rows = duckdb.sql(code).fetchall()
    return {cause: seconds for _, cause, seconds in rows}, by_cause


def pandas(code):
    names = {}
    exec(code, names)
    table = names["seconds"]
    told = {(process, cause): table.loc[process, cause] for process in table.index for cause in table.columns}
    return {key: seconds for key, seconds in told.items() if seconds or key in by_process}, by_process


failed = 0
for engine, run in (("duckdb", sql), ("pandas", pandas)):
    found, expected = run(blocks[engine].replace("DIR", recordings))
    agree = found.keys() == expected.keys() and all(
        abs(seconds * 1e9 - expected[key]) < 1000 for key, seconds in found.items()
    )
    failed += not agree
    print(f"{engine:<8} {'agrees' if agree else 'differs'}: {len(found)} sums of {len(waits)} rows")
print(f"{2 - failed} passed, {failed} failed")
sys.exit(failed > 0)
