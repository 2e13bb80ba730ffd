# Two jobs under one lock: the first says that it has it and takes the seconds of the argument; the second
# starts then.
started=${EPOCHREALTIME/./}
flock "$STAGE/job.lock" sh -c 'echo >"$0"; exec sleep "$1"' "$STAGE/locked" "$1" &
read -r _ <"$STAGE/locked"
LD_PRELOAD=$PROGRAMS/truth.so flock "$STAGE/job.lock" true
wait
echo "{\"elapsed_ns\": $((${EPOCHREALTIME/./} - started))000, \"holder_pid\": $!}" >>"$HOLDUP_TRUTH"
