# A disk with a swap area on it, and one with nothing on it.
setup() {
    mkdir -p "$STAGE/ram"
    mount -t tmpfs none "$STAGE/ram"
    truncate -s 512M "$STAGE/ram/swap.img"
    area=$(losetup --find --show "$STAGE/ram/swap.img")
    if [ "$1" = stall ]; then
        mkswap -q "$area"
    fi
}
stall() {
    host --duration 1
    truth '"waited_ns": 1, "elapsed_ns": 1'
}
healthy() {
    host --duration 1
    truth '"waited_ns": 0, "elapsed_ns": 1'
}
teardown() { losetup --detach "$area"; }
