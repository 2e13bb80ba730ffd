# In the twin the port is open.
setup() {
    if [ "$1" = healthy ]; then
        helper python3 "$here/http_server.py" tcp 127.0.0.1:9000 0
        helper bash -c 'echo ready >&3; exec 3>&-; read -r _ <"$STAGE/go"'
    else
        helper bash "$scenario/open.sh" "$here/http_server.py"
    fi
}
stall() { observe bash "$scenario/wait.sh"; }
healthy() { stall; }
