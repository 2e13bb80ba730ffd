# Started with the switch that is recommended everywhere, which this generator does not go by. The twin has the kernel's own device.
setup() {
    precedence
    compile_java
    if [ "$1" = stall ]; then
        mkfifo "$STAGE/random"
        mount --bind "$STAGE/random" /dev/random
        helper python3 "$here/feed.py" /dev/random 0.015
        truth "\"holder_pid\": $helper_pid"
    fi
}
stall() { observe "${started[@]}" -Djava.security.egd=file:/dev/./urandom com.shop.Keys; }
healthy() { stall; }
