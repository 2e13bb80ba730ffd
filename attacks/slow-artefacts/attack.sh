attack() {
    local file label number=0 running=()
    as_user python3 "$attack_folder/write_slow.py" "$MINE" "$attack_folder/../../crates/holdup/tests/samples"
    for file in "$MINE"/*; do
        number=$((number + 1))
        label=read$number
        start "$label" read "$file"
        running+=("$label" "$(basename "$file")")
        # Four at a time.
        if [ ${#running[@]} -ge 8 ]; then
            await "${running[@]}"
            running=()
        fi
    done
    await "${running[@]}"
}
await() {
    while [ $# -gt 0 ]; do
        finish "$1"
        if [ "$status" = hang ]; then lost "$1 was $2"; fi
        shift 2
    done
}
