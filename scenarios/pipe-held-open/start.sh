#!/bin/bash
# Takes the output of a command that starts another in the background, with its output to FILE.
said=$(sleep 1 >"$1" & echo started)
echo "$said" >/dev/null
