attack() {
    local file
    as_user python3 "$attack_folder/overlap.py" "$MINE"
    for file in overlap deep gzip tar; do
        start "$file" read "$MINE/$file".*
    done
    for file in overlap deep gzip tar; do
        finish "$file"
    done
}
