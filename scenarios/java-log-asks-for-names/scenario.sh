# The twin's name server answers.
setup() {
    own_resolver
    local manner=silent
    if [ "$1" = healthy ]; then manner=answers; fi
    compile_java
    helper python3 "$here/nameserver.py" "$manner"
}
stall() { observe "${started[@]}" com.shop.AccessLog; }
healthy() { stall; }
