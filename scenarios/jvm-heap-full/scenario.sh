# In the twin the heap is fifty times as large.
setup() {
    precedence
    compile_java
    heap=58m
    if [ "$1" = healthy ]; then heap=3g; fi
}
stall() { observe "${started[@]}" -XX:+UseParallelGC "-Xms$heap" "-Xmx$heap" -XX:-UseGCOverheadLimit Full; }
healthy() { stall; }
