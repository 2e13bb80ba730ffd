package com.shop;

import stage.Stage;

/** A shop that is closed. */
final class Closed {
    private Closed() {}

    public static void main(String[] words) {
        Stage.ready();
        Stage.rest();
    }
}
