# A device that lets 200 kbit/s pass. The twin has nobody who sends without a pause.
setup() {
    black_hole
    tc qdisc add dev hole0 root tbf rate 200kbit burst 6kb limit 600kb
    helper python3 "$scenario/beat.py"
    if [ "$1" = stall ]; then
        python3 "$scenario/cast.py" &
        helpers+=($!)
        sleep 1
    fi
}
stall() {
    host --duration 5
    truth '"waited_ns": 1, "elapsed_ns": 1'
}
healthy() {
    host --duration 3
    truth '"waited_ns": 0, "elapsed_ns": 1'
}
