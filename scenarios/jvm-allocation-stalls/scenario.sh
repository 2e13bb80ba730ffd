# In the twin the heap has room for what is made while the collector works.
setup() {
    precedence
    compile_java
    heap=72m
    if [ "$1" = healthy ]; then heap=3g; fi
}
stall() { observe "${started[@]}" -XX:+UseZGC "-Xmx$heap" -XX:ConcGCThreads=1 Stalls 4000; }
healthy() { stall; }
