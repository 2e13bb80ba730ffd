# Waits for a file the way shell scripts do.
started=${EPOCHREALTIME/./}
echo "$$" >"$STAGE/go"
while ! test -e "$STAGE/done"; do
    LD_PRELOAD=$PROGRAMS/truth.so sleep 0.1
done
echo "{\"elapsed_ns\": $((${EPOCHREALTIME/./} - started))000}" >>"$HOLDUP_TRUTH"
