"""Exits with 1 unless each line of a file is a comment or one figure of Prometheus' text format."""

import re
import sys

LABEL = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*"'
LINE = re.compile(r"(#.*|holdup_[a-z0-9_]+(\{" + LABEL + "(?:," + LABEL + r")*,?\})? [-+0-9.eENaInf]+( [0-9]+)?|)")

for line in open(sys.argv[1], encoding="utf-8").read().split("\n"):
    if not LINE.fullmatch(line):
        print(f"no figure: {line!r}", file=sys.stderr)
        sys.exit(1)
