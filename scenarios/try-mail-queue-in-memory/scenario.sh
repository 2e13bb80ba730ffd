# By hand the queue is on a tmpfs, configured as a person would. Each run starts Postfix, for one that runs already would write to the disk
# whatever is tried, and ends when all messages are accepted; what is then still in the queue is thrown away before the next. The
# twin's disk has no limit, and nothing is tried on it.
setup() {
    loop_disk
    if [ "$1" = stall ]; then throttle write_iops 30; fi
    mkdir "$STAGE/memory"
    mount -t tmpfs none "$STAGE/memory"
    configure_postfix "$STAGE/mnt/queue" "$STAGE/on-disk"
    configure_postfix "$STAGE/memory/queue" "$STAGE/in-memory"
}
# A command that throws away what is in a queue.
empty() {
    local part
    for part in incoming active deferred defer maildrop; do printf 'find %q -type f -delete; ' "$1/$part"; done
}
blast() { bash "$scenario/blast.sh" "$1" 40; }
as_it_is() { blast "$STAGE/on-disk"; }
by_hand() { blast "$STAGE/in-memory"; }
# Ends the Postfix that a run by hand has left, all of it: one of its processes would take the next one's mail.
before_by_hand() {
    local queue process
    for queue in "$STAGE/mnt/queue" "$STAGE/memory/queue"; do
        if [ -s "$queue/pid/master.pid" ]; then
            read -r process <"$queue/pid/master.pid"
            kill "$process"
            rm "$queue/pid/master.pid"
        fi
        eval "$(empty "$queue")"
    done
    while (: <>/dev/tcp/127.0.0.1/2525) 2>>"$STAGE/closed"; do sleep 0.01; done
}
# It uses a CPU for some tenths of a second at a time, so others get theirs.
stall() {
    come_first
    save_by_hand
    before_by_hand
    experiment disk --memory "$STAGE/mnt/queue" --runs 3 --prepare "$(empty "$STAGE/mnt/queue")" -- bash "$scenario/blast.sh" "$STAGE/on-disk" 40
}
healthy() { observe "${timed[@]}" bash "$scenario/blast.sh" "$STAGE/on-disk" 40; }
