# The twin's file system is not frozen.
setup() {
    loop_disk
    helper bash "$scenario/thaw.sh" "$STAGE/go" "$STAGE/mnt"
    truth "\"holder_pid\": $helper_pid"
    if [ "$1" = stall ]; then fsfreeze --freeze "$STAGE/mnt"; fi
}
stall() { observe "${gated[@]}" "${timed[@]}" cp /etc/services "$STAGE/mnt/copy"; }
healthy() { stall; }
# However the run ended, the file system can be unmounted.
teardown() { fsfreeze --unfreeze "$STAGE/mnt" 2>/dev/null || true; }
