# The twin is where a metadata service answers.
setup() {
    if [ "$1" = stall ]; then
        black_hole
        ip address add 169.254.169.1/24 dev hole0
        ip neighbour add 169.254.169.254 lladdr 02:00:00:00:00:01 dev hole0
    else
        ip address add 169.254.169.254/32 dev lo
        helper python3 "$here/http_server.py" tcp 169.254.169.254:80 0
    fi
}
stall() {
    observe "${timed[@]}" curl -s -o "$STAGE/page" --connect-timeout 1 http://169.254.169.254/latest/meta-data/
}
healthy() { stall; }
