package com.shop;

/** The scanner, of which a native library sees to it that one has it at a time. */
final class Scanner {
    private Scanner() {}

    static native void take();

    static native void letGo();
}
