# The twin answers with threads that are kept.
setup() {
    local how=thread
    if [ "$1" = healthy ]; then how=pool; fi
    precedence
    helper "$PROGRAMS/answer" "$how"
    server=$helper_pid
    helper "$PROGRAMS/ask"
}
stall() { attach_and_end "$server" 3; }
healthy() { stall; }
