# The twin's clerks have a lock each.
setup() {
    precedence
    compile_java
    entries=$1
}
stall() { observe "${started[@]}" com.shop.Ledger "$entries"; }
healthy() { stall; }
