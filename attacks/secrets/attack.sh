attack() {
    local number=0 format line exports target
    mkdir "$STAGE/reports"
    while IFS= read -r line; do
        case $line in '' | '#'*) continue ;; esac
        number=$((number + 1))
        exports=()
        for format in markdown collapsed pprof perfetto firefox otlp prometheus; do
            exports+=(--export "$format=$STAGE/reports/$number.$format")
        done
        # The first word names the program: a copy of sleep, which takes no offence at words that it does not read.
        eval "set -- $line"
        target=$STAGE/reports.bin/$1
        mkdir -p "$(dirname "$target")"
        cp "$PROGRAMS/wait_a_moment" "$target"
        shift
        look "run$number" run --json "$STAGE/reports/$number.json" --html "$STAGE/reports/$number.html" -o "$STAGE/reports/$number.parquet" \
            "${exports[@]}" -- "$target" "$@"
        look "show$number" show -v --json "$STAGE/reports/$number.shown.json" "$STAGE/reports/$number.parquet"
        if grep -qaE 'S3cr3t' "$STAGE/reports/$number".* "$STAGE/out/run$number".* "$STAGE/out/show$number".*; then
            lost "$(grep -laE 'S3cr3t' "$STAGE/reports/$number".* "$STAGE/out/run$number".* "$STAGE/out/show$number".* | wc -l) files have the secret of: $line"
        else
            held "no secret of form $number"
        fi
    done <"$attack_folder/forms.txt"
}
