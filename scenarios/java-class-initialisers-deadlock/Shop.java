package com.shop;

import java.util.List;
import java.util.concurrent.CountDownLatch;
import stage.Stage;

/** Prices need taxes and taxes need prices, each to be initialised; two threads begin with one each. */
public final class Shop {
    static final CountDownLatch BOTH = new CountDownLatch(2);
    static boolean crossed;

    private Shop() {}

    static void meet() {
        BOTH.countDown();
        try {
            BOTH.await();
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    public static void main(String[] words) {
        crossed = words[0].equals("stall");
        Thread prices = Stage.start("prices", () -> {
            Prices.of(7);
            Stage.rest();
        });
        Thread taxes = Stage.start("taxes", () -> {
            Taxes.of(7);
            Stage.rest();
        });
        if (!crossed) {
            Stage.until(List.of(prices, taxes), Thread.State.TIMED_WAITING);
        }
        // Those that wait for a class are runnable to Java.
        Stage.pause(300);
        Stage.ready();
        Stage.rest();
    }
}
