package com.shop;

/** Rates of currencies, which it reads as it is initialised. */
final class Rates {
    private static final int RATE = RatesFile.read();

    private Rates() {}

    static int of(int item) {
        return item * RATE;
    }
}
