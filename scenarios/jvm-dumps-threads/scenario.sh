# In the twin all stacks are looked at once.
setup() {
    precedence
    compile_java
    how=often
    if [ "$1" = healthy ]; then how=once; fi
}
stall() {
    observe "${started[@]}" -XX:+UseSerialGC -Xmx400m -Xmn300m "-Xlog:safepoint:file=$STAGE/log" Dumps "$how"
    # … At safepoint: 56350832 ns, …
    truth "\"waited_ns\": $(sed -n 's/.*At safepoint: *\([0-9]*\) ns.*/\1/p' "$STAGE/log" | awk '{ sum += $1 } END { printf "%.0f", sum }')"
}
healthy() { stall; }
