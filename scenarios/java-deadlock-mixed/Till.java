package com.shop;

import java.util.List;
import java.util.concurrent.CountDownLatch;
import stage.Stage;

/** A sale has the stock and wants the scanner, whose lock is a native library's; a count has the scanner and wants the stock. */
public final class Till {
    private final Stock stock = new Stock();
    private final CountDownLatch both;

    private Till(CountDownLatch both) {
        this.both = both;
    }

    void sell() {
        synchronized (stock) {
            meet();
            Scanner.take();
            stock.left--;
            Scanner.letGo();
        }
    }

    void count(Stock counted) {
        Scanner.take();
        meet();
        synchronized (counted) {
            counted.left++;
        }
        Scanner.letGo();
    }

    void fill() {
        synchronized (stock) {
            stock.left += 10;
        }
    }

    private void meet() {
        try {
            both.countDown();
            both.await();
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    public static void main(String[] words) {
        System.load(words[1]);
        boolean crossed = words[0].equals("stall");
        Till till = new Till(new CountDownLatch(2));
        Thread count = Stage.start("count", () -> {
            till.count(crossed ? till.stock : new Stock());
            Stage.rest();
        });
        Stage.start("watch", () -> {
            Stage.until(List.of(count), crossed ? Thread.State.BLOCKED : Thread.State.TIMED_WAITING);
            List<Thread> shelves = List.of(Stage.start("shelves", () -> {
                till.fill();
                Stage.rest();
            }));
            Stage.until(shelves, crossed ? Thread.State.BLOCKED : Thread.State.TIMED_WAITING);
            // A thread in a native library is runnable to Java, so that nobody can await that.
            Stage.pause(200);
            Stage.ready();
        });
        till.sell();
        Stage.rest();
    }
}
