# The twin's disk is not slowed.
setup() {
    slow_disk -b 1024 -J size=1 -O ^metadata_csum
    if [ "$1" = stall ]; then slow_down 1500; fi
}
stall() { observe "${timed[@]}" mkdir "$STAGE"/mnt/{1..2500}; }
healthy() { stall; }
