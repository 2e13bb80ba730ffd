import java.lang.management.ManagementFactory;
import java.util.concurrent.CountDownLatch;

/**
 * A thread works, five hundred others rest in calls, and one looks at the stacks of all and at the locks that they have, again and again or
 * once. For the locks the machine walks the heap while all are stopped, and what it found is little: nearly all of its work is in the
 * stop, and not in writing the answer down while the others run on. The machine's own log tells how long all were stopped for that.
 */
public final class Dumps {
    static volatile long compute;
    static volatile boolean over;
    static final Object[] HEAP = new Object[3_000_000];

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
        int depth = 20;
        for (int i = 0; i < HEAP.length; i++) {
            HEAP[i] = new Object();
        }
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
                ManagementFactory.getThreadMXBean().dumpAllThreads(true, true);
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
