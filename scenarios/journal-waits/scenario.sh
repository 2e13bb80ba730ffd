# The twin's journal has room for all of it, on a disk that is as slow.
setup() {
    local journal=1
    if [ "$1" = healthy ]; then journal=16; fi
    slow_disk -b 1024 -J size=$journal -O ^metadata_csum
    slow_down 1500
}
stall() { observe "${timed[@]}" mkdir "$STAGE"/mnt/{1..2500}; }
healthy() { stall; }
