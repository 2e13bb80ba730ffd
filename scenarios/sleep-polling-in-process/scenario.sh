# In the twin the file is there.
setup() {
    if [ "$1" = healthy ]; then : >"$STAGE/done"; fi
    helper bash "$here/../sleep-polling/finish.sh"
}
stall() { observe "${gated[@]}" "${timed[@]}" python3 -c 'import os, sys, time
while not os.path.exists(sys.argv[1]):
    time.sleep(0.025)' "$STAGE/done"; }
healthy() { stall; }
