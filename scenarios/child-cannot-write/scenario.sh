# The twin's child writes less than a pipe holds. Somebody outside ends the stall a second after it has begun; the truth
# of a process that is killed is not told by itself, so it is the time that it was given.
setup() {
    helper python3 "$scenario/kill.py" "$STAGE/go"
    if [ "$1" = stall ]; then
        truth '"waited_ns": 960000000, "elapsed_ns": 1000000000'
    else
        truth '"waited_ns": 0, "elapsed_ns": 50000000'
    fi
}
stall() { observe "${gated[@]}" /usr/bin/python3 "$scenario/wait.py" 100000; }
healthy() { observe "${gated[@]}" /usr/bin/python3 "$scenario/wait.py" 1000; }
