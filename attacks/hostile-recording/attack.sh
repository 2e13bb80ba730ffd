attack() {
    local file number=0 died=0
    look base run -o "$STAGE/base.parquet" -- sleep 0.1
    cp "$STAGE/base.parquet" "$MINE/base.parquet"
    chown "$ATTACKER" "$MINE/base.parquet"
    as_user mkdir "$MINE/changed"
    as_user python3 "$attack_folder/change.py" "$MINE/base.parquet" "$MINE/changed"
    # All in one run of a shell in one cgroup: the sum is judged, too. 100 of them use as much CPU as is allowed of one.
    mkdir "$CGROUP/shows"
    (
        echo "$BASHPID" >"$CGROUP/shows/cgroup.procs"
        ulimit -v 4000000
        for file in "$MINE/changed"/*; do
            status=0
            timeout -s KILL "$TIME_LIMIT" "$HOLDUP" show -v "$file" >>"$STAGE/out/shows.out" 2>>"$STAGE/out/shows.err" </dev/null || status=$?
            case $status in 0 | 1 | 2 | 125) ;; *) echo "$(basename "$file") $status" >>"$STAGE/died" ;; esac
        done
    )
    number=$(find "$MINE/changed" -type f | wc -l)
    if [ -s "$STAGE/died" ]; then
        lost "holdup show ended with another status: $(head -5 "$STAGE/died" | tr '\n' ';')"
    else
        held "$number changed recordings are refused or shown"
    fi
    look folder show "$MINE/changed"
    look diff diff "$MINE/base.parquet" "$(find "$MINE/changed" -type f | sort | head -1)"
    plain "$STAGE/out/shows.out" "$STAGE/out/shows.err"
    if [ "$(cpu_us shows)" -gt $((CPU_LIMIT * 3 * 1000000)) ]; then lost "they used $(($(cpu_us shows) / 1000000)) s of CPU"; fi
}
