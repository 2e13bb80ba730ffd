attack() {
    chmod 0755 "$ROOTS"
    mkdir "$ROOTS/cron.d"
    guard
    "$PROGRAMS/watch_folder" "$ROOTS/cron.d" "$STAGE/made" &
    until [ -e "$STAGE/made" ]; do sleep 0.01; done
    local way
    for way in tmp cwd; do
        hostile "$PROGRAMS/false_jvm" "$way" "$ROOTS/cron.d" "$MINE"
        look "$way" attach -p "$hostile_pid" -d 3
    done
    unchanged
    if [ -s "$STAGE/made" ]; then
        lost "made in root's folder: $(sort -u "$STAGE/made" | head -3 | tr '\n' ' ')"
    else
        held "nothing was made in root's folder"
    fi
}
