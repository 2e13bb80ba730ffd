attack() {
    local format
    # Who may make cgroups below his own can give them any name.
    mkdir "$CGROUP/hostile/"$'\e]0;owned\a "x <script>evil()'
    as_user cp "$PROGRAMS/bad_names" "$MINE/"$'\e]0;owned\a\e[2J<script>evil()\n"x\\\u202e'
    hostile "$MINE/"$'\e]0;owned\a\e[2J<script>evil()\n"x\\\u202e' "$MINE" $'\e]0;owned\a</script><script>evil()'
    echo "$hostile_pid" >"$CGROUP/hostile/"$'\e]0;owned\a "x <script>evil()'/cgroup.procs
    local exports=()
    for format in markdown collapsed pprof perfetto firefox otlp prometheus; do
        exports+=(--export "$format=$STAGE/out/names.$format")
    done
    look names attach -v -p "$hostile_pid" -d 1 --json "$STAGE/out/names.json" --html "$STAGE/out/names.html" \
        -o "$STAGE/names.parquet" "${exports[@]}"
    look again show -v "$STAGE/names.parquet"
    look bad_input read "$MINE/"$'\e]0;owned\a\e[2J<script>evil()\n"x\\\u202e'
    look no_such attach --name $'\e]0;owned\a' -d 1
    plain "$STAGE/out/names.out" "$STAGE/out/names.err" "$STAGE/out/again.out" "$STAGE/out/again.err" "$STAGE/out/bad_input.err" \
        "$STAGE/out/bad_input.out" "$STAGE/out/no_such.err" "$STAGE/out/names.markdown" "$STAGE/out/names.collapsed" \
        "$STAGE/out/names.prometheus"
    not_in '</script><script>evil' "$STAGE/out/names.html"
    not_in '<script>evil' "$STAGE/out/names.html"
    python3 "$attack_folder/tags.py" "$STAGE/out/names.markdown" || lost "the Markdown has a tag of a name's"
    if grep -q '^forged' "$STAGE/out"/names.*; then lost "a line of an output is forged"; fi
    if ! grep -q owned "$STAGE/out/names.out"; then lost "the names did not come into the report: nothing was tried"; fi
    python3 "$attack_folder/labels.py" "$STAGE/out/names.prometheus" || lost "the figures for Prometheus are not well formed"
    python3 -c 'import json, sys; json.load(open(sys.argv[1]))' "$STAGE/out/names.json" || lost "the JSON is none"
}
