# The twin's server answers.
setup() {
    local number
    helper python3 "$scenario/names.py" serve 127.53.53.54
    server=$helper_pid
    if [ "$1" = stall ]; then kill -STOP "$server"; fi
    for number in 1 2 3; do
        python3 "$scenario/names.py" ask 127.53.53.54 &
        helpers+=($!)
    done
}
stall() {
    host --duration 9
    truth '"waited_ns": 1, "elapsed_ns": 1'
    kill -CONT "$server"
}
healthy() {
    host --duration 4
    truth '"waited_ns": 0, "elapsed_ns": 1'
}
