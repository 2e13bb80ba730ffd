# The twin's name server answers at once. Both sides read /dev/urandom as often.
setup() {
    precedence
    local delay=0.5
    if [ "$1" = healthy ]; then delay=0; fi
    own_resolver
    helper python3 "$scenario/nameserver.py" "$delay"
}
stall() { observe "$PROGRAMS/channels" 150 6; }
healthy() { stall; }
