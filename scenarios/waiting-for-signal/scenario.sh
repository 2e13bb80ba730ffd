# The twin's signal comes at once.
setup() {
    local delay=1
    if [ "$1" = healthy ]; then delay=0; fi
    helper bash "$scenario/send.sh" "$delay"
}
# Blocked before the gate opens, so that the signal waits for the program and not the other way round.
stall() { observe "${timed[@]}" python3 -c 'import os, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
with open(sys.argv[1], "w") as gate:
    gate.write(f"{os.getpid()}\n")
signal.sigwait({signal.SIGUSR1})' "$STAGE/go"; }
healthy() { stall; }
