import java.util.concurrent.CountDownLatch;

/**
 * A thread works, five hundred others rest deep in calls, and one looks at the stacks of all, again and again or once. The machine's own log tells how
 * long all were stopped for that.
 */
public final class Dumps {
    static volatile long compute;
    static volatile boolean over;

    static void rest(int depth, CountDownLatch rested) throws InterruptedException {
        if (depth > 0) {
            rest(depth - 1, rested);
            return;
        }
        rested.countDown();
        Thread.sleep(1_000_000);
    }

    public static void main(String[] words) throws Exception {
        boolean often = words[0].equals("often");
        int depth = often ? 200 : 20;
        CountDownLatch rested = new CountDownLatch(500);
        for (int i = 0; i < 500; i++) {
            Thread rests = new Thread(() -> {
                try {
                    rest(depth, rested);
                } catch (InterruptedException e) {
                    return;
                }
            }, "rests-" + i);
            rests.setDaemon(true);
            rests.start();
        }
        rested.await();
        Thread looks = new Thread(() -> {
            do {
                Thread.getAllStackTraces();
            } while (often && !over);
        }, "looks");
        looks.setDaemon(true);
        looks.start();
        long until = System.nanoTime() + 3_000_000_000L;
        while (System.nanoTime() < until) {
            for (int i = 0; i < 10_000; i++) {
                compute = (compute * 31 + i) ^ (compute >>> 7);
            }
        }
        over = true;
        stage.Stage.truth(0);
    }
}
