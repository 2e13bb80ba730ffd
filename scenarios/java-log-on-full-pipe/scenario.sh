# The tills' log goes to stderr, which is a pipe, as in a container. The twin's collector does not pause.
setup() {
    local pause=0.12
    if [ "$1" = healthy ]; then pause=0; fi
    precedence
    compile_java
    mkfifo "$STAGE/log"
    helper python3 "$scenario/collect.py" "$STAGE/log" "$pause"
}
# shellcheck disable=SC2016 # the observed shell expands them
stall() { observe bash -c 'exec 2>"$0"; exec "$@"' "$STAGE/log" "${started[@]}" com.shop.Cart; }
healthy() { stall; }
