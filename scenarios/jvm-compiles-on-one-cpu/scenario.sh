# In the twin the code is interpreted, of a build of a tenth the size: nothing is compiled beside it.
setup() {
    precedence 100
    compile_java
    mkdir "$STAGE/build"
}
stall() { observe taskset -c 0 "${started[@]}" -XX:+UseSerialGC Build "$STAGE/build" 250; }
healthy() { observe taskset -c 0 "${started[@]}" -XX:+UseSerialGC -Xint Build "$STAGE/build" 25; }
