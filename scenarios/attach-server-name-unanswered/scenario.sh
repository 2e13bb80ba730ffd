# A server looks up a name for each page, and the name server is silent; another client is answered at once, every 20 ms. The twin's
# name server answers.
setup() {
    own_resolver
    local manner=silent
    if [ "$1" = healthy ]; then manner=answers; fi
    helper python3 "$here/nameserver.py" "$manner"
    helper node "$scenario/front.js" 8084
    front=$helper_pid
    helper node "$here/../attach-server-connects-nowhere/clients.js" 8084
}
stall() { truth_of_blocked "$front" attach --pid "$front" --duration 2; }
healthy() {
    attach --pid "$front" --duration 2
    truth '"waited_ns": 0, "elapsed_ns": 1'
}
