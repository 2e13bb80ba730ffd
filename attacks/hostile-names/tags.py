"""Exits with 1 if a Markdown file has a raw tag outside of its code spans, where a page would take it for its own."""

import re
import sys

text = open(sys.argv[1], encoding="utf-8").read()
plain = re.sub(r"(?<!`)(`+)(?!`)(.*?)(?<!`)\1(?!`)", "", text)
for line in plain.split("\n"):
    if re.search(r"(?<!\\)<[a-zA-Z/!]", line):
        print(f"a tag: {line!r}", file=sys.stderr)
        sys.exit(1)
