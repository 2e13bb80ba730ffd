# The pool has two connections, which the clerks have. The twin's has eight, so that the tills have had their answers, and sleep too.
setup() {
    local connections=2
    if [ "$1" = healthy ]; then connections=8; fi
    start_postgres "$STAGE/data"
    precedence
    compile_java /usr/share/java/HikariCP.jar /usr/share/java/postgresql.jar /usr/share/java/slf4j-api.jar /usr/share/java/slf4j-nop.jar \
        /usr/share/java/scram-client.jar
    helper "${java[@]}" com.shop.Orders jdbc:postgresql://127.0.0.1:5432/postgres "$connections"
}
stall() {
    attach --pid "$helper_pid" --duration 1
    # Four wait for a connection; the clerks and the main thread sleep.
    truth '"waited_ns": 4, "elapsed_ns": 7'
}
healthy() { look_at "$helper_pid" 0; }
