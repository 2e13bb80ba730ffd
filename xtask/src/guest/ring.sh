#!/bin/bash
# Runs the scenarios of /ring/list in a guest, as cargo xtask scenarios runs them on the host. For each a folder under
# /out: report.json, truth, stderr, the exit status of the stage in `status`, and in `queued` for how many
# microseconds some thread of the guest had no CPU meanwhile.

# Seconds after which a run is ended: emulation is some ten times slower than a processor.
deadline=180

queued() {
    sed -n 's/^some .*total=//p' /proc/pressure/cpu 2>/dev/null || true
}

number=0
while read -r scenario side; do
    number=$((number + 1))
    echo "guest: $scenario, $side"
    out=/out/$number
    work=$(mktemp -d)
    mkdir "$out"
    before=$(queued)
    # Its own session, so that whatever it leaves behind can be ended.
    HOLDUP=/usr/bin/holdup PROGRAMS=/ring/programs STAGE=$work HOLDUP_REPORT=$out/report.json HOLDUP_TRUTH=$out/truth \
        timeout --kill-after=5 $deadline bash /scenarios/stage/stage.sh "/scenarios/$scenario" "$side" \
        </dev/null >/dev/null 2>"$out/stderr" &
    stage=$!
    wait $stage
    echo $? >"$out/status"
    after=$(queued)
    echo $((${after:-0} - ${before:-0})) >"$out/queued"
    # timeout leads the group.
    kill -KILL -- -$stage 2>/dev/null
    if [ -e "$work/cgroup" ]; then
        until rmdir "$(cat "$work/cgroup")" 2>/dev/null || [ ! -d "$(cat "$work/cgroup")" ]; do sleep 0.1; done
    fi
    rm -rf "$work"
done </ring/list
