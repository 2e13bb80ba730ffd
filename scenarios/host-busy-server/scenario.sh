# The twin has no client that lets the server compute.
setup() {
    local number
    helper python3 "$scenario/figures.py" serve 7103
    for number in 1 2 3; do
        python3 "$scenario/figures.py" ask 7103 &
        helpers+=($!)
    done
    if [ "$1" = stall ]; then
        python3 "$scenario/figures.py" report 7103 &
        helpers+=($!)
        sleep 1
    fi
}
stall() {
    host --duration 8
    truth '"waited_ns": 1, "elapsed_ns": 1'
}
healthy() {
    host --duration 4
    truth '"waited_ns": 0, "elapsed_ns": 1'
}
