attack() {
    as_user mkdir "$MINE/locked" "$MINE/linked" "$MINE/open"
    as_user chmod 0777 "$MINE/open"
    as_user ln -s "$ROOTS/secret" "$MINE/linked/.recorder"
    hostile python3 "$attack_folder/keep_lock.py" "$MINE/locked/.recorder"
    local folder
    for folder in locked linked open; do
        start "$folder" record --every 5s --dir "$MINE/$folder"
    done
    # One that refuses does it at once; one that records is told to end.
    for folder in locked linked open; do
        for _ in {1..40}; do
            if grep -q 'populated 0' "$CGROUP/$folder/cgroup.events"; then break; fi
            sleep 0.1
        done
        if grep -q 'populated 1' "$CGROUP/$folder/cgroup.events"; then lost "it records into the folder $folder of another user"; fi
        end_with TERM "$folder"
        if find "$MINE/$folder" -name '*.parquet' | grep -q .; then lost "a recording is in the folder $folder of another user"; fi
    done
    unchanged
}
