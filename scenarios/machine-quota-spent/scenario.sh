# A service computes for each of its clients, in a cgroup that may use a tenth of a CPU. In the twin it may use all.
setup() {
    local most=10000
    if [ "$1" = healthy ]; then most=100000; fi
    ordinary_services
    quota "$most"
    helper "${limited[@]}" python3 "$here/service.py" 7101 2 compute 20
}
stall() { look_at_machine 1; }
healthy() { look_at_machine 0; }
