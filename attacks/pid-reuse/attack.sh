attack() {
    local backend
    # Who is looked at beside it keeps the observation going when it ends.
    (exec sleep 1000) &
    local other=$!
    for backend in bpf proc; do
        hostile "$PROGRAMS/reuse_pid"
        look "$backend" attach --backend "$backend" -d 8 -p "$hostile_pid,$other"
        if grep -q first "$STAGE/out/$backend.out" && ! grep -q second "$STAGE/out/$backend.out"; then
            held "$backend: what another process did is not told of it"
        else
            lost "$backend: what another process did is told of it"
        fi
        as_user pkill -KILL reuse_pid
    done
    hostile "$PROGRAMS/reuse_pid"
    sleep 5
    look changing attach -d 1 -p "$hostile_pid,$other"
}
