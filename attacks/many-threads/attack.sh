attack() {
    hostile "$PROGRAMS/deep_threads"
    start threads attach -p "$hostile_pid" -d 1
    innocent
    # Each thread is looked at by design: what a thread costs times ten thousand, and a busy machine.
    finish threads $((TIME_LIMIT * 2))
}
