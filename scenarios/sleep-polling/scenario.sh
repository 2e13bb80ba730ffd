# In the twin the file is there.
setup() {
    if [ "$1" = healthy ]; then : >"$STAGE/done"; fi
    helper bash "$scenario/finish.sh"
}
stall() { observe bash "$scenario/poll.sh"; }
healthy() { stall; }
