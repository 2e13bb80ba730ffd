import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executors;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;

/** Answers which partitions a table has; the metastore knows, the service remembers for a moment. */
public final class CatalogService {
    private final ClientPool pool;
    private final BlockingQueue<String> requests = new LinkedBlockingQueue<>(1000);
    private final Map<String, String> partitions = new ConcurrentHashMap<>();
    private final AtomicLong answered = new AtomicLong();

    CatalogService(ClientPool pool) {
        this.pool = pool;
    }

    private String lookup(String table) throws IOException, InterruptedException {
        MetastoreClient c = pool.borrow();
        try {
            return c.ask("partitions " + table);
        } finally {
            pool.giveBack(c);
        }
    }

    private void warmUp() {
        try {
            partitions.put("*", lookup("*"));
        } catch (IOException | InterruptedException e) {
            System.err.println("warm-up: " + e);
        }
    }

    private void planner() {
        try {
            while (true) {
                String table = requests.take();
                try {
                    partitions.put(table, lookup(table));
                    answered.incrementAndGet();
                } catch (IOException e) {
                    System.err.println(table + ": " + e.getMessage());
                }
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private void maintain() {
        try {
            while (true) {
                Thread.sleep(300);
                pool.retireOld(60_000);
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private void report(Path file) {
        try {
            Files.writeString(file, pool.describe() + " answered " + answered + " queued " + requests.size() + "\n");
        } catch (IOException e) {
            System.err.println(e.getMessage());
        }
    }

    public static void main(String[] args) {
        int port = Integer.parseInt(System.getenv("METASTORE_PORT"));
        CatalogService cs = new CatalogService(new ClientPool(1, () -> new MetastoreClient(port)));
        new Thread(cs::warmUp, "warm-up").start();
        new Thread(cs::maintain, "pool-maintenance").start();
        for (int i = 0; i < 3; i++) {
            new Thread(cs::planner, "planner-" + i).start();
        }
        ScheduledExecutorService timer = Executors.newScheduledThreadPool(1, r -> new Thread(r, "timer"));
        int[] n = {0};
        timer.scheduleAtFixedRate(() -> cs.requests.offer("sales_" + n[0]++ % 40), 900, 200, TimeUnit.MILLISECONDS);
        Path status = Path.of(System.getenv("RUN"), "catalog.status");
        timer.scheduleAtFixedRate(() -> cs.report(status), 1000, 1000, TimeUnit.MILLISECONDS);
    }
}
