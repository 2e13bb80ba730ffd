# In the twin the loop looks now and then whether it is to stop.
setup() {
    precedence
    compile_java
    loops=-
    if [ "$1" = healthy ]; then loops=+; fi
}
stall() {
    observe "${started[@]}" -XX:+UseSerialGC -Xmx64m "-XX:${loops}UseCountedLoopSafepoints" \
        "-Xlog:safepoint:file=$STAGE/log" Late
    # … Reaching safepoint: 272093517 ns, …
    truth "\"waited_ns\": $(sed -n 's/.*Reaching safepoint: *\([0-9]*\) ns.*/\1/p' "$STAGE/log" | awk '{ sum += $1 } END { printf "%.0f", sum }')"
}
healthy() { stall; }
