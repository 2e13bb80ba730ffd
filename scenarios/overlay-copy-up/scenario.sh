# The twin's file is in the upper directory already.
setup() {
    loop_disk
    mkdir -p "$STAGE/mnt/image" "$STAGE/mnt/own" "$STAGE/mnt/work" "$STAGE/merged"
    head -c 8M /dev/urandom >"$STAGE/mnt/image/database"
    make_cold
    if [ "$1" = healthy ]; then cp "$STAGE/mnt/image/database" "$STAGE/mnt/own/database"; fi
    mount -t overlay overlay \
        -o "lowerdir=$STAGE/mnt/image,upperdir=$STAGE/mnt/own,workdir=$STAGE/mnt/work" "$STAGE/merged"
    throttle read_bps 8388608
}
stall() { observe "${timed[@]}" chmod 600 "$STAGE/merged/database"; }
healthy() { stall; }
