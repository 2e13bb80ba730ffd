# The twin's first job takes no time.
setup() {
    mkfifo "$STAGE/locked"
}
stall() { observe bash "$scenario/jobs.sh" 1; }
healthy() { observe bash "$scenario/jobs.sh" 0; }
