# The twin's device gives all at once.
setup() {
    local pause=0.1
    if [ "$1" = healthy ]; then pause=0; fi
    mkfifo "$STAGE/random"
    mount --bind "$STAGE/random" /dev/random
    helper python3 "$here/feed.py" /dev/random "$pause"
}
stall() { observe "${timed[@]}" head -c 16 /dev/random >"$STAGE/key"; }
healthy() { stall; }
