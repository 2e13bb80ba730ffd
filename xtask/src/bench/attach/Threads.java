import com.sun.management.OperatingSystemMXBean;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.locks.LockSupport;

/**
 * A JVM to be watched: IDLE threads that are parked for ever, and WORKERS that, a turn for each line on stdin, make orders under
 * a shared monitor and hand every so many over to one that books them. Says "ready", then of each turn its seconds and how
 * much CPU time of the whole process went by.
 */
public final class Threads {
    private static final int WORKERS = 2;
    private static final int ORDERS = 3_000_000;
    private static final int HANDED_OVER_EVERY = 200;

    private static final Map<String, Integer> stock = new HashMap<>();
    private static final BlockingQueue<String> booked = new ArrayBlockingQueue<>(16);

    public static void main(String[] arguments) throws Exception {
        int idle = Integer.parseInt(arguments[0]);
        for (int number = 0; number < idle; number++) {
            Thread thread = new Thread(() -> { while (true) LockSupport.park(); }, "idle-" + number);
            thread.setDaemon(true);
            thread.start();
        }
        Thread books = new Thread(Threads::book, "books");
        books.setDaemon(true);
        books.start();
        OperatingSystemMXBean machine = (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        System.out.println("ready");
        BufferedReader orders = new BufferedReader(new InputStreamReader(System.in));
        while (orders.readLine() != null) {
            long began = System.nanoTime(), cpu = machine.getProcessCpuTime();
            turn();
            double seconds = (System.nanoTime() - began) / 1e9;
            System.out.println(seconds + " " + (machine.getProcessCpuTime() - cpu) / 1e9);
        }
    }

    private static void turn() throws InterruptedException {
        CountDownLatch done = new CountDownLatch(WORKERS);
        for (int worker = 0; worker < WORKERS; worker++) {
            int seed = worker;
            new Thread(() -> { order(seed); done.countDown(); }, "worker-" + worker).start();
        }
        done.await();
    }

    private static void order(int seed) {
        for (int number = 0; number < ORDERS; number++) {
            String article = "article-" + (number * 31 + seed) % 997;
            synchronized (stock) {
                stock.merge(article, 1, Integer::sum);
            }
            if (number % HANDED_OVER_EVERY == 0) {
                try {
                    booked.put(article);
                } catch (InterruptedException ended) {
                    return;
                }
            }
        }
    }

    private static void book() {
        try {
            while (true) {
                booked.take();
            }
        } catch (InterruptedException ended) {
            Thread.currentThread().interrupt();
        }
    }
}
