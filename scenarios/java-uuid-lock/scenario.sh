setup() {
    precedence
    compile_java
    ids=$1
}
stall() { observe "${started[@]}" com.shop.Ids "$ids"; }
healthy() { stall; }
