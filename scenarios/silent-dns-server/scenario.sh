# The twin's name server answers.
setup() {
    own_resolver
    local manner=silent
    if [ "$1" = healthy ]; then manner=answers; fi
    helper python3 "$here/nameserver.py" "$manner"
}
stall() { observe "${timed[@]}" getent ahosts db.shop.test; }
healthy() { stall; }
