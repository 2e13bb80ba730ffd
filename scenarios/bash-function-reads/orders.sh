# Reads orders and counts them. Says how long it has waited for them, and how long all took.
started=${EPOCHREALTIME/./}
waited=0

next_order() {
    local order before=${EPOCHREALTIME/./}
    read -r order <&3 || return 1
    waited=$((waited + ${EPOCHREALTIME/./} - before))
    count=$((count + ${#order}))
}

work() {
    while next_order; do
        :
    done
}

count=0
exec 3< <(exec python3 "$1" "$2")
work
echo "{\"waited_ns\": ${waited}000, \"elapsed_ns\": $((${EPOCHREALTIME/./} - started))000}" >>"$HOLDUP_TRUTH"
