#!/bin/bash
# nightly archive of exports
. "$STAGE"
mkdir exports
for n in 1 2 3 4; do /usr/bin/python3 -c 'import random, sys
random.seed(int(sys.argv[1]))
for row in range(600000): print(row, random.randint(1, 99999), "paid" if row % 3 else "open", sep=";")' $n >exports/$n.csv; done
(tar -cf - exports exports exports exports | xz -9e >archive.tar.xz) & PACKS=$!
there archive.tar.xz; sleep 2; ready $PACKS
