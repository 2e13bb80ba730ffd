# By hand another device is read. The part that is no wait for randomness is a sleep, so that a busy machine changes little. The twin's
# device gives all at once, and nothing is tried on it.
setup() {
    local pause=0.1
    if [ "$1" = healthy ]; then pause=0; fi
    mkfifo "$STAGE/random"
    mount --bind "$STAGE/random" /dev/random
    helper python3 "$here/feed.py" /dev/random "$pause" again
}
key() { sh -c 'head -c 8 "$0" >"$1/key"; sleep 0.15' "$1" "$STAGE"; }
as_it_is() { key /dev/random; }
by_hand() { key /dev/urandom; }
stall() {
    save_by_hand
    experiment random.device --runs 3 -- sh -c 'head -c 8 /dev/random >"$0/key"; sleep 0.15' "$STAGE"
}
healthy() { observe "${timed[@]}" head -c 16 /dev/random >"$STAGE/key"; }
