# The folder of the JVM's figures is on a disk, and somebody has what was written there put on the disk all the time. The twin has the same
# disk without the limit.
setup() {
    precedence
    compile_java
    loop_disk
    need_stable_pages
    local figures
    figures=/tmp/hsperfdata_$(id -un)
    mkdir -p "$figures"
    chmod 755 "$STAGE/mnt"
    mount --bind "$STAGE/mnt" "$figures"
    sync -f "$STAGE/mnt"
    if [ "$1" = stall ]; then throttle_kernel write_iops 4; fi
    # shellcheck disable=SC2016 # the helper expands them
    helper bash -c 'echo ready >&3; while :; do if [ -e "$2" ]; then sync -f "$0"; [ -e "$1" ] || rm "$2"; fi; sleep 0.01; done' \
        "$STAGE/mnt" "$STAGE/runs" "$STAGE/busy"
}
stall() { observe "${started[@]}" -XX:+UseSerialGC -Xmx32m Counts "$STAGE/runs" "$STAGE/busy"; }
healthy() { stall; }
