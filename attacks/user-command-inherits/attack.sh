attack() {
    local verb
    export AWS_SECRET_ACCESS_KEY=roots-own-key SSH_AUTH_SOCK=/root/agent LD_PRELOAD_ROOT=roots-own-key
    chmod 0777 "$STAGE/out"
    for verb in run scale try; do
        case $verb in
        run) set -- run --user nobody -- sh "$attack_folder/tell.sh" "$STAGE/out/told.run" ;;
        scale) set -- scale --user nobody --workers 1 --repeats 2 --operations 1 --control /dev/zero -- sh "$attack_folder/tell.sh" "$STAGE/out/told.scale" ;;
        try) set -- try --without timer.sleep --user nobody --yes --runs 2 -- sh "$attack_folder/tell.sh" "$STAGE/out/told.try" ;;
        esac
        look "$verb" "$@"
        if [ ! -s "$STAGE/out/told.$verb" ]; then
            lost "$verb --user did not run CMD: $(tail -1 "$STAGE/out/$verb.err")"
            continue
        fi
        not_in roots-own-key "$STAGE/out/told.$verb"
        not_in /root/agent "$STAGE/out/told.$verb"
        not_in bpf "$STAGE/out/told.$verb"
        if grep -E '^Cap(Eff|Prm|Inh|Amb)' "$STAGE/out/told.$verb" | grep -qv '0000000000000000$'; then
            lost "$verb --user: CMD has capabilities"
        fi
        if grep -E '^Groups:' "$STAGE/out/told.$verb" | grep -qw 0; then lost "$verb --user: CMD has root's group"; fi
    done
}
