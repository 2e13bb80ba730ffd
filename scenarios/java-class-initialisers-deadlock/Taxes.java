package com.shop;

/** Taxes; a part of the price of an item. */
final class Taxes {
    private static final int LEAST;

    static {
        Shop.meet();
        LEAST = Shop.crossed ? Prices.of(1) / 10 : 10;
    }

    private Taxes() {}

    static int of(int item) {
        return item * 7 + LEAST;
    }
}
