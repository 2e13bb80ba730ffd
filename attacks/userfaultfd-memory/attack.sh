attack() {
    local node=$STAGE/userfaultfd pids=() mode
    mkdir "$STAGE/devices"
    mount -t tmpfs -o mode=0755 devices "$STAGE/devices"
    node=$STAGE/devices/userfaultfd
    mknod -m 0666 "$node" c 10 "$(awk '$2 == "userfaultfd" { print $1 }' /proc/misc)"
    for mode in poll futex futex poll stack exec; do
        hostile "$PROGRAMS/uffd_memory" "$node" "$mode"
        pids+=("$hostile_pid")
    done
    for mode in 0 2 4 5; do
        start "look$mode" attach -p "${pids[mode]}" -d 1
    done
    innocent
    for mode in 0 2 4 5; do
        finish "look$mode"
    done
    start all attach -p "$(IFS=,; echo "${pids[*]}")"
    sleep 2
    end_with INT all
    # However many are stuck, one beside them is read.
    (exec sleep 1000) &
    look beside attach --backend proc -d 2 -p "$(IFS=,; echo "${pids[*]:0:4}"),$!"
    if grep -q timer.sleep "$STAGE/out/beside.out"; then
        held "what is beside them is read"
    else
        lost "what is beside them is not read"
    fi
    start sampled attach --backend proc -p "$(IFS=,; echo "${pids[*]}")"
    sleep 2
    end_with TERM sampled
}
