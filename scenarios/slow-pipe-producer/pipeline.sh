# A pipeline whose first command takes as many seconds as the argument says.
started=${EPOCHREALTIME/./}
sh -c 'echo b; sleep "$0"; echo a' "$1" | LD_PRELOAD=$PROGRAMS/truth.so sort >"$STAGE/sorted"
echo "{\"elapsed_ns\": $((${EPOCHREALTIME/./} - started))000}" >>"$HOLDUP_TRUTH"
