# The twin's server answers.
setup() {
    local number manner=nothing
    if [ "$1" = healthy ]; then manner=answer; fi
    helper python3 "$scenario/mute.py" serve 7104 "$manner"
    for number in 1 2 3; do
        python3 "$scenario/mute.py" ask 7104 &
        helpers+=($!)
    done
    sleep 1
}
stall() {
    host --duration 3
    truth '"waited_ns": 1, "elapsed_ns": 1'
}
healthy() {
    host --duration 3
    truth '"waited_ns": 0, "elapsed_ns": 1'
}
