# A root shell's terminal is a pty of our own; what waits in its input when holdup has ended was typed by nobody.
attack() {
    local verb
    for verb in run scale try; do
        case $verb in
        run) set -- run --user nobody -- "$PROGRAMS/push_keys" ;;
        scale) set -- scale --user nobody --workers 1 --repeats 2 --operations 1 --control /dev/zero -- "$PROGRAMS/push_keys" ;;
        try) set -- try --without timer.sleep --user nobody --yes --runs 2 -- "$PROGRAMS/push_keys" ;;
        esac
        if timeout -s KILL "$TIME_LIMIT" python3 "$attack_folder/shell_terminal.py" "$STAGE/out/$verb" "$HOLDUP" "$@"; then
            if grep -q '^pushed' "$STAGE/out/$verb.terminal"; then
                lost "$verb --user: $(head -c 200 "$STAGE/out/$verb.terminal" | tr '\n' ' ')"
            else
                held "$verb --user: root's terminal has no input"
            fi
        else
            lost "$verb --user did not end in $TIME_LIMIT s"
        fi
    done
}
