# The twin has the same disk without the limit.
setup() {
    precedence
    compile_java
    loop_disk
    if [ "$1" = stall ]; then throttle write_iops 15; fi
}
stall() { observe "${started[@]}" com.shop.Cart "$STAGE/mnt/audit.log"; }
healthy() { stall; }
