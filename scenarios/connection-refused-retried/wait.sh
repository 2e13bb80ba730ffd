# Waits for a port the way shell scripts do.
started=${EPOCHREALTIME/./}
echo "$$" >"$STAGE/go"
until curl -s -o "$STAGE/page" http://127.0.0.1:9000/; do
    LD_PRELOAD=$PROGRAMS/truth.so sleep 0.2
done
echo "{\"elapsed_ns\": $((${EPOCHREALTIME/./} - started))000}" >>"$HOLDUP_TRUTH"
