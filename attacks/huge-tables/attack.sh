attack() {
    ulimit -n 1000000 2>/dev/null || true
    local kind
    for kind in mounts sockets words; do
        as_user mkdir "$MINE/$kind"
        hostile "$PROGRAMS/fill_tables" "$kind" "$MINE/$kind"
        start "$kind" attach -p "$hostile_pid" -d 1
    done
    innocent
    for kind in mounts sockets words; do finish "$kind"; done
    look host host -d 1
    look doctor doctor
}
