# Says who it is, and goes on when it is answered.
started=${EPOCHREALTIME/./}
echo "$$" >"$STAGE/go"
read -r _ <"$STAGE/answer"
echo "{\"elapsed_ns\": $((${EPOCHREALTIME/./} - started))000}" >>"$HOLDUP_TRUTH"
