"""Exits with 1 if a file has control characters other than a new line and a tab, or marks that change the direction of text."""

import sys
import unicodedata

DIRECTION = set("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")

text = open(sys.argv[1], "rb").read().decode("utf-8", "surrogateescape")
for place, one in enumerate(text):
    if one in "\n\t":
        continue
    if unicodedata.category(one) in ("Cc", "Cs") or one in DIRECTION:
        print(f"{sys.argv[1]}: {one!r} at {place}: …{text[max(0, place - 40):place + 40]!r}", file=sys.stderr)
        sys.exit(1)
