# A service with the policy for what runs only where nobody else wants to, on one CPU, and a program that always computes there. The twin has
# that CPU for itself.
setup() {
    helper taskset --cpu-list 0 chrt --idle 0 python3 "$here/service.py" 7101 2 compute 1
    if [ "$1" = stall ]; then
        taskset --cpu-list 0 sh -c 'while :; do :; done' &
        helpers+=($!)
    fi
}
stall() {
    host --duration 5
    truth '"waited_ns": 1, "elapsed_ns": 1'
}
healthy() {
    host --duration 4
    truth '"waited_ns": 0, "elapsed_ns": 1'
}
