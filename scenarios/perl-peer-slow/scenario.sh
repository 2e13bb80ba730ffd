# A Perl program fetches prices from a server, by a module of Perl's own. The twin's server answers at once.
setup() {
    local delay=1
    if [ "$1" = healthy ]; then delay=0; fi
    helper python3 "$here/backend.py" 8081 "$delay"
}
stall() { observe "${timed[@]}" perl "$scenario/prices.pl" http://127.0.0.1:8081/; }
healthy() { stall; }
