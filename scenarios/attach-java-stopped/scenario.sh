# Stopped before anybody looked, so that it answers nobody. The twin goes on, and has nothing but a clock to wait for.
setup() {
    precedence
    compile_java
    unknown_layout
    helper "${java[@]}" -XX:+UseSerialGC -XX:TieredStopAtLevel=1 com.shop.Closed
    if [ "$1" = stall ]; then
        kill -STOP "$helper_pid"
        until grep -q '^State:.T' "/proc/$helper_pid/status"; do :; done
    fi
}
stall() {
    attach --pid "$helper_pid" --duration 1.5
    truth '"waited_ns": 1, "elapsed_ns": 1'
}
healthy() {
    attach --pid "$helper_pid" --duration 1.5
    truth '"waited_ns": 0, "elapsed_ns": 1'
}
# Stopped, it would not end when it is told to.
teardown() { kill -CONT "$helper_pid"; }
