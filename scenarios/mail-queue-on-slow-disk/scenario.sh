# Twenty sessions at once hand Postfix one message after the other, each to be safe in its queue before it is accepted. The queue
# is on a disk with a limit; the twin's is in memory, and nothing else is different. Says how many messages were accepted a
# second: `cargo xtask scenarios --unobserved --verbose mail-queue-on-slow-disk` tells both rates at full speed.
setup() {
    local queue=$STAGE/mnt/queue pace=()
    precedence
    loop_disk
    throttle write_iops 11
    if [ "$1" = healthy ]; then
        mkdir "$STAGE/memory"
        mount -t tmpfs none "$STAGE/memory"
        queue=$STAGE/memory/queue
    fi
    start_postfix "$queue"
    # Under observation each session pauses for a second after a message, so that the twin has enough of CPU and disk.
    if [ -n "${HOLDUP-}" ]; then pace=(-w 1); fi
    smtp-source "${pace[@]}" -s 20 -m 1000000 -l 4000 -f boss@mail.example -t staff@mail.example 127.0.0.1:2525 &
    helpers+=("$!")
    until [ "$(accepted)" -ge 40 ]; do sleep 0.05; done
}
# How many messages are in the queue by now.
accepted() {
    grep -c message-id= "$postfix_log" || true
}
look() {
    local before begin ns
    before=$(accepted) begin=$(date +%s%N)
    # The processes that write messages into the queue; those that talk to clients wait for these.
    attach --pid "$(pgrep --parent "$postfix" --exact cleanup --delimiter ,)" --duration 3
    if [ -z "${HOLDUP-}" ]; then sleep 3; fi
    ns=$(($(date +%s%N) - begin))
    echo "messages a second: $((($(accepted) - before) * 1000000000 / ns))" >&2
}
stall() {
    look
    # There is always a message for each of them.
    truth '"waited_ns": 1, "elapsed_ns": 1'
}
healthy() {
    look
    truth '"waited_ns": 0, "elapsed_ns": 1'
}
