# Four clients have kept their connections after a first answer. Then one asks for a page for which Node runs a program and waits
# for it, and that waits for a lock which somebody has. The twin's clients ask for nothing.
setup() {
    flock "$STAGE/page.lock" sleep 1000 &
    holder=$!
    helpers+=("$holder")
    until [ -e "$STAGE/page.lock" ] && ! flock --nonblock "$STAGE/page.lock" true; do :; done
    helper node "$scenario/service.js" 8083 "$STAGE/page.lock"
    service=$helper_pid
    if [ "$1" = stall ]; then
        helper python3 "$here/clients.py" 8083 / / / /page
    else
        helper python3 "$here/clients.py" 8083 / / / /
    fi
}
stall() {
    # The child has been started, and is in the kernel's list of those who wait for a lock.
    until child=$(pgrep --parent "$service" flock) && grep -q -e "-> .* $child " /proc/locks; do :; done
    attach --pid "$service" --only --duration 2
    # The thread with the clients waits all the time; the pool's threads have nothing to do.
    truth '"waited_ns": 1, "elapsed_ns": 1'
}
healthy() {
    attach --pid "$service" --only --duration 2
    truth '"waited_ns": 0, "elapsed_ns": 1'
}
