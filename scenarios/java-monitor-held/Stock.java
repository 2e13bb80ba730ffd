package com.shop;

import stage.Stage;

/** What is left on the shelves. */
final class Stock {
    private int left = 7;

    int left() {
        return left;
    }

    /** Counts for longer than any scenario lasts. */
    void count() {
        Stage.rest();
        left--;
    }
}
