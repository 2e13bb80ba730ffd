# The twin's file system is not frozen: the file is made, and the program sleeps.
# shellcheck disable=SC2016 # the helper's shell expands it
setup() {
    loop_disk
    if [ "$1" = stall ]; then fsfreeze --freeze "$STAGE/mnt"; fi
    helper bash -c 'echo ready >&3; exec 3>&-; exec >"$0/copy"; exec sleep 1000' "$STAGE/mnt"
    stuck=$helper_pid
    if [ "$1" = stall ]; then
        until grep -q '^257 ' "/proc/$stuck/syscall" && grep -q '^State:.D' "/proc/$stuck/status"; do :; done
    else
        until grep -q sleep "/proc/$stuck/comm" && grep -q '^State:.S' "/proc/$stuck/status"; do :; done
    fi
}
stall() { look_at "$stuck" 1; }
healthy() { look_at "$stuck" 0; }
# However the run ended, the file system can be unmounted.
teardown() { fsfreeze --unfreeze "$STAGE/mnt" 2>/dev/null || true; }
