package com.shop;

/** Prices; with their taxes. */
final class Prices {
    private static final int TAX;

    static {
        Shop.meet();
        TAX = Shop.crossed ? Taxes.of(1) : 1;
    }

    private Prices() {}

    static int of(int item) {
        return item * 100 + TAX;
    }
}
