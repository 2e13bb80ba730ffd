# Two carriers, of which no more are made for these waits.
setup() {
    precedence
    compile_java
    helper "${java[@]:0:1}" -Djdk.virtualThreadScheduler.parallelism=2 -Djdk.virtualThreadScheduler.maxPoolSize=2 "${java[@]:1}" com.shop.Tills "$1"
}
stall() {
    attach --pid "$helper_pid" --duration 1
    # The two carriers wait; the main thread sleeps.
    truth '"waited_ns": 2, "elapsed_ns": 3'
}
healthy() { look_at "$helper_pid" 0; }
