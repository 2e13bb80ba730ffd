package com.shop;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import stage.Stage;

/**
 * As many virtual threads as there are carriers wait in the initialiser of a class, which pins them, for a virtual thread that finds
 * no carrier. In the twin they wait outside of any initialiser, and let their carriers go.
 */
public final class Tills {
    static final CountDownLatch OPEN = new CountDownLatch(1);

    private Tills() {}

    static void awaitOpening() {
        try {
            OPEN.await();
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    /** Two tills of their own classes: that each initialises its own, and neither waits for the other's. */
    static final class First {
        static final int NUMBER = number(1);
    }

    static final class Second {
        static final int NUMBER = number(2);
    }

    static int number(int number) {
        awaitOpening();
        return number;
    }

    public static void main(String[] words) throws InterruptedException {
        boolean pins = words[0].equals("stall");
        List<Thread> all = new ArrayList<>();
        all.add(Thread.ofVirtual().name("till-1").start(() -> {
            int number = pins ? First.NUMBER : number(1);
            rest(number);
        }));
        all.add(Thread.ofVirtual().name("till-2").start(() -> {
            int number = pins ? Second.NUMBER : number(2);
            rest(number);
        }));
        Stage.pause(200);
        Thread.ofVirtual().name("opener").start(OPEN::countDown);
        if (!pins) {
            for (Thread till : all) {
                till.join();
            }
        }
        Stage.pause(200);
        Stage.ready();
        Stage.rest();
    }

    private static void rest(int number) {
        if (number == 0) {
            throw new IllegalStateException("a till without a number");
        }
    }
}
