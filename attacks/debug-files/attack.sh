attack() {
    local kind
    for kind in fifo zero secret loop; do
        as_user mkdir "$MINE/$kind" "$MINE/$kind/.debug"
        as_user cp "$PROGRAMS/jit_names" "$MINE/$kind/program"
        as_user touch "$MINE/$kind/program.debug"
        as_user strip "$MINE/$kind/program"
        as_user objcopy --add-gnu-debuglink="$MINE/$kind/program.debug" "$MINE/$kind/program"
        as_user rm "$MINE/$kind/program.debug"
        case $kind in
        fifo) as_user mkfifo "$MINE/fifo/program.debug" "$MINE/fifo/.debug/program.debug" ;;
        zero) as_user ln -s /dev/zero "$MINE/zero/program.debug" ;;
        secret) as_user ln -s "$ROOTS/secret" "$MINE/secret/program.debug" ;;
        loop) as_user ln -s program.debug "$MINE/loop/program.debug" ;;
        esac
        hostile "$MINE/$kind/program" "$kind" "$ROOTS/secret"
        start "$kind" attach -v -p "$hostile_pid" -d 1
    done
    for kind in fifo zero secret loop; do
        finish "$kind"
        not_in "root's secret" "$STAGE/out/$kind.out" "$STAGE/out/$kind.err"
    done
    unchanged
}
