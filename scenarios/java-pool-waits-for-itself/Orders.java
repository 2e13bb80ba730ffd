package com.shop;

import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executors;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import stage.Stage;

/**
 * Three workers take an order each, and ask the pool that they are of for its price. In the twin they have had their prices, and
 * what else waits in a healthy JVM stands beside them: a timed pool, a forking one, a queue's taker, one that polls with a time limit.
 */
public final class Orders {
    private static final int WORKERS = 3;

    private final ThreadPoolExecutor pool;

    private Orders(ThreadPoolExecutor pool) {
        this.pool = pool;
    }

    int take() {
        try {
            return pool.submit(() -> 7).get();
        } catch (InterruptedException | ExecutionException e) {
            throw new IllegalStateException(e);
        }
    }

    private static void meet(CountDownLatch all) {
        try {
            all.countDown();
            all.await();
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    private static ThreadFactory named(String name) {
        AtomicInteger next = new AtomicInteger();
        return work -> {
            Thread thread = new Thread(work, name + "-" + next.incrementAndGet());
            thread.setDaemon(true);
            return thread;
        };
    }

    public static void main(String[] words) throws Exception {
        ThreadPoolExecutor pool = (ThreadPoolExecutor) Executors.newFixedThreadPool(WORKERS, named("orders"));
        Orders orders = new Orders(pool);
        if (words[0].equals("stall")) {
            CountDownLatch all = new CountDownLatch(WORKERS);
            for (int order = 0; order < WORKERS; order++) {
                pool.execute(() -> {
                    meet(all);
                    orders.take();
                });
            }
            // Three at work and each one's question in the queue: nobody is left to answer.
            while (pool.getActiveCount() < WORKERS || pool.getQueue().size() < WORKERS) {
                Thread.onSpinWait();
            }
        } else {
            for (int order = 0; order < WORKERS; order++) {
                pool.submit(() -> 7).get();
            }
            ScheduledExecutorService timed = Executors.newScheduledThreadPool(2, named("timed"));
            timed.scheduleAtFixedRate(() -> {}, 100, 100, TimeUnit.MILLISECONDS);
            ForkJoinPool.commonPool().submit(() -> 7).get();
            BlockingQueue<Integer> queue = new LinkedBlockingQueue<>();
            named("taker").newThread(() -> take(queue)).start();
            named("poller").newThread(() -> poll(queue)).start();
        }
        Stage.pause(200);
        Stage.ready();
        Stage.rest();
    }

    private static void take(BlockingQueue<Integer> queue) {
        try {
            while (queue.take() >= 0) {
                Thread.onSpinWait();
            }
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    private static void poll(BlockingQueue<Integer> queue) {
        try {
            while (queue.poll(500, TimeUnit.MILLISECONDS) == null) {
                Thread.onSpinWait();
            }
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }
}
