package com.shop;

import java.util.ArrayList;
import java.util.List;
import stage.Stage;

/** Three tills need the rates, of which another thread runs the initialiser; one of them asks for the class by its name. */
public final class Till {
    private Till() {}

    static void checkout(boolean byName) {
        if (!byName) {
            Rates.of(7);
            return;
        }
        try {
            Class.forName("com.shop.Rates");
        } catch (ClassNotFoundException e) {
            throw new IllegalStateException(e);
        }
    }

    public static void main(String[] words) {
        RatesFile.slow = words[0].equals("stall");
        List<Thread> threads = new ArrayList<>();
        threads.add(Stage.start("rates", () -> {
            RatesFile.first();
            Stage.rest();
        }));
        while (!RatesFile.begun) {
            Thread.onSpinWait();
        }
        for (int till = 1; till <= 3; till++) {
            boolean byName = till == 1;
            threads.add(Stage.start("till-" + till, () -> {
                checkout(byName);
                Stage.rest();
            }));
        }
        if (!RatesFile.slow) {
            Stage.until(threads, Thread.State.TIMED_WAITING);
        }
        // Those that wait for a class are runnable to Java.
        Stage.pause(300);
        Stage.ready();
        Stage.rest();
    }
}
